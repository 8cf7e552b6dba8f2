import { randomBytes } from "node:crypto";
import { generateKey } from "../../src/domain/credentials.ts";
import type { FakeStripe } from "../support/fake-stripe.ts";
import type { TortureEndpoint } from "./endpoint.ts";
import {
  LIMITED_ACCOUNTS,
  LIMITED_PLAN_LIMITS,
  type LimitSpec,
  limitJson,
  RICH_ACCOUNT_LIMITS,
  RICH_KEY_LIMITS,
  RICH_PLAN_LIMITS,
} from "./limits.ts";
import { MODEL, maxInputTokens, OPERATOR_TOKEN } from "./settings.ts";

export type Key = {
  readonly id: string;
  readonly secret: string;
  readonly accountId: string;
  /** The ids of the keys that created it. */
  readonly ancestors: readonly string[];
};

/** The name of a planned call's key; "wrong" is a key that was never created. */
export type KeyName = string;

/** The accounts and keys of one episode. No other episode uses them. */
export type Tenants = {
  readonly keys: ReadonlyMap<KeyName, Key>;
  readonly accountIds: readonly string[];
  /** The initial balance of the account in the race for funds. */
  readonly fundedMicros: bigint;
  /** When all credit of an account expires, by the clock of the history. */
  readonly expiries: ReadonlyMap<KeyName, number>;
  /** Before the first charge, by the clock of the machine. */
  readonly startedAt: number;
  /** The limits that refuse calls, by the id of the key or account or the name of the plan, as they are at the beginning. */
  readonly limits: ReadonlyMap<string, readonly LimitSpec[]>;
};

export type TenantOptions = {
  readonly operator: Operator;
  /** Of a server, for keys that other keys create. */
  readonly url: string;
  readonly fundedMicros: bigint;
  readonly endpoint: TortureEndpoint;
  readonly stripe: FakeStripe;
};

export const TIGHT_LIMIT = 20;
export const KEY_CAP = 5;
export const FUNDED_CALLS = 5;
const RICH_MICROS = 1_000_000_000n;
const RICH = 3;
export const VICTIMS = 3;
/** The keys of accounts that pay for their calls. The last one pays automatically. */
export const CUSTOMERS: readonly KeyName[] = ["customer0", "customer1", "customer2"];
const CUSTOMER_MICROS = 1_000n;
/** The keys of accounts that have nothing but credit that expires, and when it does, after the load begins. */
export const EXPIRING: ReadonlyMap<KeyName, number> = new Map([
  ["expiring0", 1_500],
  ["expiring1", 3_000],
  ["expiring2", 4_500],
]);
const EXPIRING_MICROS = "1000000";
export const RICH_KEYS: readonly KeyName[] = Array.from({ length: RICH * 2 }, (_, i) => `rich${i}`);

/** The maximum cost of a call in the race for funds, which is also its actual cost. */
export function fundedCallMicros(promptBytes: number, maxTokens: number): bigint {
  return priceOf(maxInputTokens(promptBytes), BigInt(maxTokens));
}

/** The formula of the contract: ceil((in × price + out × price) / 1,000,000). */
export function priceOf(inputTokens: bigint, outputTokens: bigint): bigint {
  const exact = inputTokens * MODEL.inputPrice + outputTokens * MODEL.outputPrice;
  return exact / 1_000_000n + (exact % 1_000_000n === 0n ? 0n : 1n);
}

export class Operator {
  readonly #url: () => string;

  constructor(url: () => string) {
    this.#url = url;
  }

  async call(method: string, request: object): Promise<{ status: number; body: Record<string, unknown> }> {
    const answer = await fetch(`${this.#url()}/vx.admin.v1.AdminService/${method}`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${OPERATOR_TOKEN}` },
      body: JSON.stringify(request),
      signal: AbortSignal.timeout(15_000),
    });
    return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
  }

  async must(method: string, request: object): Promise<Record<string, unknown>> {
    const { status, body } = await this.call(method, request);
    if (status !== 200) throw new Error(`${method}: ${status} ${JSON.stringify(body)}`);
    return body;
  }
}

async function setLimits(operator: Operator, owner: object, limits: readonly LimitSpec[]): Promise<void> {
  for (const limit of limits) {
    await operator.must("SetLimit", { ...owner, limit: limitJson(limit) });
  }
}

export async function createPlans(operator: Operator): Promise<void> {
  await operator.must("PutPlan", { name: "torture", rpm: 1_000_000, maxActiveKeys: 1_000_000 });
  await operator.must("PutPlan", { name: "capped", rpm: 1_000_000, maxActiveKeys: KEY_CAP });
  await operator.must("PutPlan", { name: "limited", rpm: 1_000_000, maxActiveKeys: 1_000_000 });
  await setLimits(operator, { plan: "torture" }, RICH_PLAN_LIMITS);
  await setLimits(operator, { plan: "limited" }, LIMITED_PLAN_LIMITS);
}

/** When credits expire, after the start of the round, and how much each is: some are spent before, some are not. */
const GRANT_SECONDS = [5, 10, 20, 40, 80, 160];
const GRANT_MICROS = "2000";

/** The webhook of operators gets the events of all accounts. */
const ACCOUNTS_WITH_WEBHOOKS = 3;

export async function createTenants({ operator, url, endpoint, stripe, fundedMicros }: TenantOptions): Promise<Tenants> {
  const startedAt = Date.now();
  const keys = new Map<KeyName, Key>();
  const accountIds: string[] = [];
  const account = async (plan: string, micros: bigint) => {
    const { account } = await operator.must("CreateAccount", { name: "torture", plan });
    const { id } = account as { id: string };
    accountIds.push(id);
    if (accountIds.length <= ACCOUNTS_WITH_WEBHOOKS) {
      await operator.must("CreateWebhook", { accountId: id, url: endpoint.url(id), reason: "torture" });
    }
    if (micros > 0n) {
      const credit = { accountId: id, amountMicros: String(micros), reason: "torture", idempotencyKey: `first-${id}` };
      await operator.must("CreditAccount", credit);
    }
    if (micros === RICH_MICROS || micros === CUSTOMER_MICROS) await addGrants(id);
    return id;
  };
  /** Credits that expire while calls spend them, and one that does not. */
  const addGrants = async (accountId: string) => {
    for (const seconds of [...GRANT_SECONDS, undefined]) {
      await operator.must("CreditAccount", {
        accountId,
        amountMicros: GRANT_MICROS,
        reason: "torture",
        idempotencyKey: `grant-${seconds}-${accountId}`,
        promotional: seconds === undefined,
        ...(seconds && { expiresAt: new Date(Date.now() + seconds * 1_000).toISOString() }),
      });
    }
  };
  const key = async (name: KeyName, accountId: string, more: object = {}) => {
    const scopes = ["generate", "read", "keys", "billing"];
    const made = await operator.must("CreateKey", { accountId, name, scopes, ...more });
    const { id } = made.apiKey as { id: string };
    keys.set(name, { id, secret: made.secret as string, accountId, ancestors: [] });
  };
  for (let i = 0; i < RICH; i++) {
    const id = await account("torture", RICH_MICROS);
    await key(`rich${2 * i}`, id);
    await key(`rich${2 * i + 1}`, id);
    await setLimits(operator, { accountId: id }, RICH_ACCOUNT_LIMITS);
    await setLimits(operator, { keyId: keys.get(`rich${2 * i}`)?.id }, RICH_KEY_LIMITS);
  }
  const first = accountIds[0] ?? "";
  await key("narrow", first, { scopes: ["read"] });
  await key("tight", first, { rateLimitRpm: TIGHT_LIMIT });
  for (let i = 0; i < VICTIMS; i++) await key(`victim${i}`, accountIds[i % RICH] ?? "");
  await key("poor", await account("torture", fundedMicros));
  await key("capped", await account("capped", 0n));
  keys.set("wrong", { id: "", secret: generateKey(7, randomBytes).secret, accountId: "", ancestors: [] });
  const limits = new Map([["limited", LIMITED_PLAN_LIMITS]]);
  for (const of of LIMITED_ACCOUNTS) {
    const accountId = await account("limited", RICH_MICROS);
    await setLimits(operator, { accountId }, of.limits);
    limits.set(accountId, of.limits);
    for (const { name, parent, limits: ofKey } of of.keys) {
      if (parent === undefined) await key(name, accountId, { limits: ofKey.map(limitJson) });
      else keys.set(name, await createChild(url, keys.get(parent) as Key, ofKey));
      limits.set(keys.get(name)?.id ?? "", ofKey);
    }
  }
  for (const name of CUSTOMERS) await key(name, await account("torture", CUSTOMER_MICROS));
  await startAutoTopUps(operator, stripe, url, keys.get(CUSTOMERS.at(-1) ?? "")?.accountId ?? "");
  for (const name of EXPIRING.keys()) await key(name, await account("torture", 0n));
  const expiries = new Map<KeyName, number>();
  for (const [name, afterMs] of EXPIRING) {
    const accountId = keys.get(name)?.accountId;
    await operator.must("CreditAccount", {
      accountId,
      amountMicros: EXPIRING_MICROS,
      reason: "torture",
      idempotencyKey: `expiring-${accountId}`,
      expiresAt: new Date(Date.now() + afterMs).toISOString(),
    });
    expiries.set(name, performance.now() + afterMs);
  }
  return { keys, accountIds, fundedMicros, limits, expiries, startedAt };
}

/** The customer stores a card, with which the servers pay whenever the balance is low. */
async function startAutoTopUps(operator: Operator, stripe: FakeStripe, url: string, accountId: string): Promise<void> {
  await operator.must("PutAutoTopUp", {
    accountId,
    enabled: true,
    thresholdMicros: "25000",
    amountMicros: "20000",
    monthlyMaxMicros: "1000000",
  });
  const status = await stripe.deliver(stripe.storeCard(stripe.setupOf(accountId)), url);
  if (status !== 200) throw new Error(`storing a card: ${status}`);
}

async function createChild(url: string, parent: Key, limits: readonly LimitSpec[]): Promise<Key> {
  const answer = await fetch(`${url}/v1/keys`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${parent.secret}` },
    body: JSON.stringify({ name: "child", scopes: ["generate", "read", "keys"], limits: limits.map(limitJson) }),
  });
  const text = await answer.text();
  if (answer.status !== 200) throw new Error(`POST /v1/keys: ${answer.status} ${text}`);
  const { api_key: key, secret } = JSON.parse(text) as { api_key: { id: string }; secret: string };
  return { id: key.id, secret, accountId: parent.accountId, ancestors: [...parent.ancestors, parent.id] };
}
