import { getOption } from "@bufbuild/protobuf";
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import {
  type AccountOfPerson,
  type GetSessionResponse,
  AccountService as PageService,
} from "../../gen/vx/account/v1/account_pb.js";
import { policy, MemberRole as RoleNumber } from "../../gen/vx/options/v1/options_pb.js";
import { AccountService, type GetAccountResponse } from "../../gen/vx/v1/account_pb.js";
import { EventService } from "../../gen/vx/v1/event_pb.js";
import { FailureService } from "../../gen/vx/v1/failure_pb.js";
import { type ApiKey, KeyService } from "../../gen/vx/v1/key_pb.js";
import { LedgerService } from "../../gen/vx/v1/ledger_pb.js";
import { LimitService } from "../../gen/vx/v1/limit_pb.js";
import { type GetMeResponse, MeService } from "../../gen/vx/v1/me_pb.js";
import { ModelService } from "../../gen/vx/v1/model_pb.js";
import { StatementService } from "../../gen/vx/v1/statement_pb.js";
import { TopUpService } from "../../gen/vx/v1/top_up_pb.js";
import { UsageService } from "../../gen/vx/v1/usage_pb.js";
import { WebhookService } from "../../gen/vx/v1/webhook_pb.js";
import { coversRole, type MemberRole, SCOPES_OF_ROLE } from "../../src/domain/member.ts";
import { SCOPES, type Scope } from "../../src/domain/scope.ts";
import { MEMBER_METHODS } from "../shared/member-methods.ts";
import { PRODUCT } from "../shared/product.ts";
import type { UsageSource } from "../shared/usage.ts";

export type MemberMethod = keyof typeof MEMBER_METHODS;

/** A person who works with an account. */
export type Membership = { readonly person: GetSessionResponse; readonly account: AccountOfPerson };

/** The key that is signed in, or the member, with the clients of the services. */
export type Viewer = {
  /** Identifies what is shown: the key, or the account of the member. */
  readonly id: string;
  /** The key that is signed in, and the balance at the time of the sign-in. */
  readonly me: GetMeResponse | undefined;
  readonly membership: Membership | undefined;
  /** At the time of the sign-in. Undefined for keys without the scope "read". */
  readonly account: GetAccountResponse | undefined;
  /** Why the member's role does not allow a method. Keys get the refusal from the server. */
  readonly refusalOf: (method: MemberMethod) => string | undefined;
  /** Why the member's role does not allow to change the key, which has scopes that the role does not cover. */
  readonly refusalOfKey: (apiKey: ApiKey) => string | undefined;
  /** The scopes that a new key can get. Keys get the refusal of others from the server. */
  readonly scopes: readonly Scope[];
  /** Only for members. */
  readonly pageService: Client<typeof PageService>;
  readonly accountService: Client<typeof AccountService>;
  readonly eventService: Client<typeof EventService>;
  readonly failureService: Client<typeof FailureService>;
  readonly keyService: Client<typeof KeyService>;
  readonly limitService: Client<typeof LimitService>;
  readonly ledgerService: Client<typeof LedgerService>;
  readonly usageService: Client<typeof UsageService>;
  readonly statementService: Client<typeof StatementService>;
  readonly topUpService: Client<typeof TopUpService>;
  readonly modelService: Client<typeof ModelService>;
  readonly webhookService: Client<typeof WebhookService>;
  /** Whether the server takes payments, and the viewer may see them. */
  readonly canPay: boolean;
  /** Whether the viewer may change what concerns payments. */
  readonly canBill: boolean;
  /** Empty if the key cannot list them. */
  readonly modelIds: () => Promise<string[]>;
  /** The names of keys by their ids; empty without the scope "keys". */
  readonly keyNames: () => Promise<ReadonlyMap<string, string>>;
};

/** One page of a list. */
const MAX_NAMES = 1_000;

/** Throws if the server does not accept the key. */
export async function signInWithKey(transport: Transport): Promise<Viewer> {
  const clients = clientsOf(transport);
  const [me, account] = await Promise.all([createClient(MeService, transport).getMe({}), accountOf(clients.accountService)]);
  const canBill = account?.key?.scopes.includes("billing") === true;
  return {
    ...clients,
    id: me.key,
    me,
    membership: undefined,
    account,
    refusalOf: () => undefined,
    refusalOfKey: () => undefined,
    scopes: SCOPES,
    canPay: PRODUCT.takesPayments && canBill,
    canBill,
  };
}

/** The transport names the account. */
export async function openAccount(transport: Transport, membership: Membership): Promise<Viewer> {
  const clients = clientsOf(transport);
  const { id, role } = membership.account;
  const isOperator = membership.person.operator !== "";
  const refusalOf = (method: MemberMethod) => refusalOfRole(role, isOperator, method);
  return {
    ...clients,
    id,
    me: undefined,
    membership,
    account: await clients.accountService.getAccount({}),
    refusalOf,
    refusalOfKey: (apiKey) => refusalOfScopes(SCOPES_OF_ROLE[role as MemberRole], apiKey),
    scopes: SCOPES_OF_ROLE[role as MemberRole],
    canPay: PRODUCT.takesPayments || membership.person.simulatesPayments,
    canBill: refusalOf("updateAccount") === undefined,
  };
}

function clientsOf(transport: Transport) {
  const keyService = createClient(KeyService, transport);
  const modelService = createClient(ModelService, transport);
  return {
    pageService: createClient(PageService, transport),
    accountService: createClient(AccountService, transport),
    eventService: createClient(EventService, transport),
    failureService: createClient(FailureService, transport),
    keyService,
    limitService: createClient(LimitService, transport),
    ledgerService: createClient(LedgerService, transport),
    usageService: createClient(UsageService, transport),
    statementService: createClient(StatementService, transport),
    topUpService: createClient(TopUpService, transport),
    webhookService: createClient(WebhookService, transport),
    modelService,
    modelIds: () =>
      modelService.listModels({ pageSize: MAX_NAMES }).then(
        ({ data }) => data.map(({ id }) => id),
        () => [],
      ),
    keyNames: () =>
      keyService.listKeys({ pageSize: MAX_NAMES, includePlayground: true }).then(
        ({ apiKeys }) => new Map(apiKeys.map(({ id, name }) => [id, name])),
        () => new Map<string, string>(),
      ),
  };
}

/** The roles that methods name; the names of the others are not needed. */
const NEEDED_ROLES: Partial<Record<RoleNumber, MemberRole>> = {
  [RoleNumber.DEVELOPER]: "developer",
  [RoleNumber.BILLING]: "billing",
  [RoleNumber.OWNER]: "owner",
};

function refusalOfRole(role: string, isOperator: boolean, method: MemberMethod): string | undefined {
  const needed = NEEDED_ROLES[getOption(MEMBER_METHODS[method], policy).member?.role ?? RoleNumber.UNSPECIFIED];
  if (needed === undefined || coversRole(role as MemberRole, needed)) return undefined;
  if (isOperator) return "You view this page as an operator: you cannot change anything here.";
  const roles = needed === "owner" ? "the role “owner”" : `the role “${needed}” or “owner”`;
  return `This needs ${roles}. Your role is “${role}”.`;
}

function refusalOfScopes(covered: readonly string[], { scopes }: ApiKey): string | undefined {
  const others = scopes.filter((scope) => !covered.includes(scope));
  if (others.length === 0) return undefined;
  return `The key has the scope “${others.join(", ")}”, which your role does not cover. Ask an owner.`;
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
