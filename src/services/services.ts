import type {
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from "@bufbuild/protobuf";
import type { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import type { ChatService } from "../../gen/vx/openai/v1/chat_pb.js";
import type { GenerateService } from "../../gen/vx/v1/generate_pb.js";
import type { KeyService } from "../../gen/vx/v1/key_pb.js";
import type { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import type { MeService } from "../../gen/vx/v1/me_pb.js";
import type { ModelService } from "../../gen/vx/v1/model_pb.js";
import type { Call } from "../gate/call.ts";
import type { Meter } from "../metering/meter.ts";
import { adjustAccount } from "./admin/adjust-account.ts";
import { audit } from "./admin/audit.ts";
import { createAccount } from "./admin/create-account.ts";
import { createKey as adminCreateKey } from "./admin/create-key.ts";
import { creditAccount } from "./admin/credit-account.ts";
import { getAccount } from "./admin/get-account.ts";
import { listAccounts } from "./admin/list-accounts.ts";
import { listKeys as adminListKeys } from "./admin/list-keys.ts";
import { listLedgerEntries } from "./admin/list-ledger-entries.ts";
import { listModels as adminListModels } from "./admin/list-models.ts";
import { listPlans } from "./admin/list-plans.ts";
import { putPlan } from "./admin/put-plan.ts";
import { revokeKey as adminRevokeKey } from "./admin/revoke-key.ts";
import { setAccountPlan } from "./admin/set-account-plan.ts";
import { setKeyLimit } from "./admin/set-key-limit.ts";
import { createKey } from "./create-key.ts";
import type { Deps } from "./deps.ts";
import { generate } from "./generate.ts";
import { getKey } from "./get-key.ts";
import { getMe } from "./get-me.ts";
import { getModel } from "./get-model.ts";
import { listEntries } from "./list-entries.ts";
import { listKeys } from "./list-keys.ts";
import { listModels } from "./list-models.ts";
import { createChatCompletion } from "./openai/create-chat-completion.ts";
import { streamChatCompletion } from "./openai/stream-chat-completion.ts";
import { revokeKey } from "./revoke-key.ts";
import { streamGenerate } from "./stream-generate.ts";

/** The methods of a service, whatever the protocol they are called over. One left out answers "unimplemented". */
export type ServiceMethods<Service extends DescService> = Partial<{
  [Name in keyof Service["method"]]: Service["method"][Name] extends DescMethodUnary<
    infer Input,
    infer Output
  >
    ? (request: MessageShape<Input>, call: Call) => Promise<MessageInitShape<Output>>
    : Service["method"][Name] extends DescMethodServerStreaming<infer Input, infer Output>
      ? (request: MessageShape<Input>, call: Call) => AsyncIterable<MessageInitShape<Output>>
      : never;
}>;

export const meService: ServiceMethods<typeof MeService> = { getMe };

export function keyService(deps: Deps): ServiceMethods<typeof KeyService> {
  return {
    createKey: (request, call) => createKey(deps, request, call),
    listKeys: (request, call) => listKeys(deps, request, call),
    getKey: (request, call) => getKey(deps, request, call),
    revokeKey: (request, call) => revokeKey(deps, request, call),
  };
}

export function modelService(deps: Deps): ServiceMethods<typeof ModelService> {
  return {
    listModels: (request) => listModels(deps, request),
    getModel: (request) => getModel(deps, request),
  };
}

export function ledgerService(deps: Deps): ServiceMethods<typeof LedgerService> {
  return { listEntries: (request, call) => listEntries(deps, request, call) };
}

export function generateService(meter: Meter): ServiceMethods<typeof GenerateService> {
  return {
    generate: (request, call) => generate(meter, request, call),
    streamGenerate: (request, call) => streamGenerate(meter, request, call),
  };
}

export function chatService(meter: Meter): ServiceMethods<typeof ChatService> {
  return {
    createChatCompletion: (request, call) => createChatCompletion(meter, request, call),
    streamChatCompletion: (request, call) => streamChatCompletion(meter, request, call),
  };
}

export function adminService(deps: Deps): ServiceMethods<typeof AdminService> {
  return {
    createAccount: (request) => createAccount(deps, request),
    getAccount: (request) => getAccount(deps, request),
    listAccounts: (request) => listAccounts(deps, request),
    creditAccount: (request) => creditAccount(deps, request),
    adjustAccount: (request) => adjustAccount(deps, request),
    listPlans: () => listPlans(deps),
    listModels: (request) => adminListModels(deps, request),
    putPlan: (request) => putPlan(deps, request),
    setAccountPlan: (request) => setAccountPlan(deps, request),
    createKey: (request) => adminCreateKey(deps, request),
    listKeys: (request) => adminListKeys(deps, request),
    revokeKey: (request) => adminRevokeKey(deps, request),
    setKeyLimit: (request) => setKeyLimit(deps, request),
    listLedgerEntries: (request) => listLedgerEntries(deps, request),
    audit: (_, call) => audit(deps, call),
  };
}
