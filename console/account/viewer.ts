import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { AccountService, type GetAccountResponse } from "../../gen/vx/v1/account_pb.js";
import { EventService } from "../../gen/vx/v1/event_pb.js";
import { FailureService } from "../../gen/vx/v1/failure_pb.js";
import { KeyService } from "../../gen/vx/v1/key_pb.js";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { LimitService } from "../../gen/vx/v1/limit_pb.js";
import { type GetMeResponse, MeService } from "../../gen/vx/v1/me_pb.js";
import { ModelService } from "../../gen/vx/v1/model_pb.js";
import { StatementService } from "../../gen/vx/v1/statement_pb.js";
import { TopUpService } from "../../gen/vx/v1/top_up_pb.js";
import { UsageService } from "../../gen/vx/v1/usage_pb.js";
import { WebhookService } from "../../gen/vx/v1/webhook_pb.js";
import { PRODUCT } from "../shared/product.ts";
import type { UsageSource } from "../shared/usage.ts";

/** The key that is signed in, with the clients of the services. */
export type Viewer = {
  /** The key and the balance at the time of the sign-in. */
  readonly me: GetMeResponse;
  /** Whether the account is suspended at the time of the sign-in. */
  readonly isSuspended: boolean;
  readonly accountService: Client<typeof AccountService>;
  readonly eventService: Client<typeof EventService>;
  readonly failureService: Client<typeof FailureService>;
  readonly meService: Client<typeof MeService>;
  readonly keyService: Client<typeof KeyService>;
  readonly limitService: Client<typeof LimitService>;
  readonly ledgerService: Client<typeof LedgerService>;
  readonly usageService: Client<typeof UsageService>;
  readonly statementService: Client<typeof StatementService>;
  readonly topUpService: Client<typeof TopUpService>;
  readonly modelService: Client<typeof ModelService>;
  /** Whether the server takes payments, and the key has the scope "billing". */
  readonly canPay: boolean;
  readonly webhookService: Client<typeof WebhookService>;
  /** Empty if the key cannot list them. */
  readonly modelIds: () => Promise<string[]>;
  /** The names of keys by their ids; empty without the scope "keys". */
  readonly keyNames: () => Promise<ReadonlyMap<string, string>>;
};

/** One page of a list. */
const MAX_NAMES = 1_000;

/** Throws if the server does not accept the key. */
export async function signIn(transport: Transport): Promise<Viewer> {
  const meService = createClient(MeService, transport);
  const keyService = createClient(KeyService, transport);
  const accountService = createClient(AccountService, transport);
  const topUpService = createClient(TopUpService, transport);
  const modelService = createClient(ModelService, transport);
  const [me, account] = await Promise.all([meService.getMe({}), accountOf(accountService)]);
  return {
    me,
    isSuspended: account?.state === "suspended",
    accountService,
    eventService: createClient(EventService, transport),
    failureService: createClient(FailureService, transport),
    meService,
    keyService,
    limitService: createClient(LimitService, transport),
    ledgerService: createClient(LedgerService, transport),
    usageService: createClient(UsageService, transport),
    statementService: createClient(StatementService, transport),
    topUpService,
    canPay: PRODUCT.takesPayments && account?.key?.scopes.includes("billing") === true,
    webhookService: createClient(WebhookService, transport),
    modelService,
    modelIds: () =>
      modelService.listModels({ pageSize: MAX_NAMES }).then(
        ({ data }) => data.map(({ id }) => id),
        () => [],
      ),
    keyNames: () =>
      keyService.listKeys({ pageSize: MAX_NAMES }).then(
        ({ apiKeys }) => new Map(apiKeys.map(({ id, name }) => [id, name])),
        () => new Map(),
      ),
  };
}

/** Undefined if the key lacks the scope "read": without it, the page shows only what any key may read. */
function accountOf({ getAccount }: Viewer["accountService"]): Promise<GetAccountResponse | undefined> {
  return getAccount({}).catch(() => undefined);
}

/** The usage of the account. */
export function usageOf({ usageService, keyNames }: Viewer): UsageSource {
  return {
    list: async (request, options) => {
      const { rows, nextPageToken } = await usageService.getUsage(request, options);
      return {
        rows: rows.map((usage) => ({ usage, accountId: "", accountName: "", keyName: "" })),
        nextPageToken,
      };
    },
    namesOf: async (split) => (split === "key" ? await keyNames() : new Map()),
  };
}
