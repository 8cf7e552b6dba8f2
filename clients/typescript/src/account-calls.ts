import { createClient } from "@connectrpc/connect";
import type { Caller, Input } from "./caller.ts";
import {
  type ApiKey,
  type CreateKeyRequestSchema,
  type CreateKeyResponse,
  KeyService,
  type ListKeysRequestSchema,
  type RotateKeyRequestSchema,
  type RotateKeyResponse,
  type UpdateKeyRequestSchema,
} from "./gen/vx/v1/key_pb.ts";
import { type LedgerEntry, LedgerService, type ListEntriesRequestSchema } from "./gen/vx/v1/ledger_pb.ts";
import { type Limit, LimitService, type ListLimitsRequestSchema } from "./gen/vx/v1/limit_pb.ts";
import { type ListModelsRequestSchema, type Model, ModelService } from "./gen/vx/v1/model_pb.ts";
import { type GetUsageRequestSchema, type UsageRow, UsageService } from "./gen/vx/v1/usage_pb.ts";
import { Pages } from "./pages.ts";
import type { CallOptions } from "./retries.ts";

/** The models of the server. */
export class ModelCalls {
  readonly #caller: Caller;
  readonly #models;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.#models = createClient(ModelService, caller.transport);
  }

  list(input: Input<typeof ListModelsRequestSchema> = {}, options: CallOptions = {}): Pages<Model> {
    return new Pages(async (pageToken) => {
      const request = { ...input, pageToken: pageToken || (input.pageToken ?? "") };
      const response = await this.#caller.call("read", options, (attempt) => this.#models.listModels(request, attempt));
      return { items: response.data, nextPageToken: response.nextPageToken };
    });
  }

  async get(model: string, options: CallOptions = {}): Promise<Model> {
    const response = await this.#caller.call("read", options, (attempt) => this.#models.getModel({ model }, attempt));
    return response.model as Model;
  }
}

/** The keys of the account. */
export class KeyCalls {
  readonly #caller: Caller;
  readonly #keys;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.#keys = createClient(KeyService, caller.transport);
  }

  list(input: Input<typeof ListKeysRequestSchema> = {}, options: CallOptions = {}): Pages<ApiKey> {
    return new Pages(async (pageToken) => {
      const request = { ...input, pageToken: pageToken || (input.pageToken ?? "") };
      const response = await this.#caller.call("read", options, (attempt) => this.#keys.listKeys(request, attempt));
      return { items: response.apiKeys, nextPageToken: response.nextPageToken };
    });
  }

  async get(keyId: string, options: CallOptions = {}): Promise<ApiKey> {
    const response = await this.#caller.call("read", options, (attempt) => this.#keys.getKey({ keyId }, attempt));
    return response.apiKey as ApiKey;
  }

  /** Creates a key. Not repeated if its connection ends, because the key may exist then. */
  create(input: Input<typeof CreateKeyRequestSchema>, options: CallOptions = {}): Promise<CreateKeyResponse> {
    return this.#caller.call("write", options, (attempt) => this.#keys.createKey(input, attempt));
  }

  /** Changes the fields that are set, or those that `updateMask` names. */
  async update(input: Input<typeof UpdateKeyRequestSchema>, options: CallOptions = {}): Promise<ApiKey> {
    // The same change twice has the effect of one.
    const response = await this.#caller.call("read", options, (attempt) => this.#keys.updateKey(input, attempt));
    return response.apiKey as ApiKey;
  }

  /** Gives a key a new secret. Not repeated if its connection ends, because the key may have it then. */
  rotate(input: Input<typeof RotateKeyRequestSchema>, options: CallOptions = {}): Promise<RotateKeyResponse> {
    return this.#caller.call("write", options, (attempt) => this.#keys.rotateKey(input, attempt));
  }

  /** Revokes a key permanently. */
  async revoke(keyId: string, options: CallOptions = {}): Promise<ApiKey> {
    // To revoke a revoked key has no effect.
    const response = await this.#caller.call("read", options, (attempt) => this.#keys.revokeKey({ keyId }, attempt));
    return response.apiKey as ApiKey;
  }
}

/** The charges and credits of the account. */
export class LedgerCalls {
  readonly #caller: Caller;
  readonly #ledger;

  constructor(caller: Caller) {
    this.#caller = caller;
    this.#ledger = createClient(LedgerService, caller.transport);
  }

  /** The entries, newest first. */
  list(input: Input<typeof ListEntriesRequestSchema> = {}, options: CallOptions = {}): Pages<LedgerEntry> {
    return new Pages(async (pageToken) => {
      const request = { ...input, pageToken: pageToken || (input.pageToken ?? "") };
      const response = await this.#caller.call("read", options, (attempt) => this.#ledger.listEntries(request, attempt));
      return { items: response.entries, nextPageToken: response.nextPageToken };
    });
  }

  /** The entry of a generation, by the id of its reply. */
  async generation(id: string, options: CallOptions = {}): Promise<LedgerEntry> {
    const response = await this.#caller.call("read", options, (attempt) => this.#ledger.getGeneration({ id }, attempt));
    return response.entry as LedgerEntry;
  }
}

export function limitsOf(caller: Caller) {
  const service = createClient(LimitService, caller.transport);
  return async (input: Input<typeof ListLimitsRequestSchema> = {}, options: CallOptions = {}): Promise<Limit[]> =>
    (await caller.call("read", options, (attempt) => service.listLimits(input, attempt))).limits;
}

export function usagePages(caller: Caller) {
  const service = createClient(UsageService, caller.transport);
  return (input: Input<typeof GetUsageRequestSchema> = {}, options: CallOptions = {}): Pages<UsageRow> =>
    new Pages(async (pageToken) => {
      const request = { ...input, pageToken: pageToken || (input.pageToken ?? "") };
      const response = await caller.call("read", options, (attempt) => service.getUsage(request, attempt));
      return { items: response.rows, nextPageToken: response.nextPageToken };
    });
}
