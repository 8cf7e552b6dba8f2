import { expect, inject, vi } from "vitest";
import { OPERATOR_TOKEN, sinceNow, startTestApp, type TestApp, tellOnFailure } from "./app.ts";
import { replyWhen } from "./fake-upstreams/behaviours.ts";
import { type FakeCall, FakeUpstream } from "./fake-upstreams/fake-upstream.ts";
import { createTestAccount, createTestKey, type Operator, operatorOf, type TestKey } from "./fixtures.ts";
import type { GenerateFields } from "./generators.ts";
import { createModelsFile } from "./models.ts";
import { moneyProblems } from "./payer.ts";
import { bearer } from "./protocols.ts";
import { started } from "./started.ts";

/** Input tokens cost one micro each, output tokens two. */
export const MODEL = "fake";

/** Every token costs a third of a micro. */
export const CHEAP_MODEL = "cheap";

/** Priced like "fake", with the default allowance for a chat template and a default limit of 100 tokens. */
export const TEMPLATE_MODEL = "template";

/** Like "fake", with all capabilities, and at most 100 tokens for an image. */
export const ABLE_MODEL = "able";

/** Creates embeddings. */
export const VECTOR_MODEL = "vectors";

/** The sandbox, with all capabilities and the prices of "fake". */
export const SANDBOX_MODEL = "sandbox";

/** A context window that fits the largest request of the API. */
export const WIDE_MODEL = "wide";

/** 22 bytes: at most 26 tokens, so the hold is 26 + 2 × max_tokens. */
export const REQUEST: GenerateFields = {
  model: MODEL,
  messages: [{ role: "user", content: "Say hello to the world" }],
  maxTokens: 10,
};
export const HELD_MICROS = 46n;
/** 11 input tokens and 4 output tokens, as the upstream reports. */
export const COST_MICROS = 19n;

/** In JSON. */
export const SANDBOX_REQUEST = { model: SANDBOX_MODEL, messages: [{ role: "user", content: "hi" }], max_tokens: 10 };
const texts = { model: VECTOR_MODEL, input: ["word ".repeat(20)] };

/** Each address of a metered method over REST, with a small request. */
export const METERED_SURFACES: readonly [path: string, body: Readonly<Record<string, unknown>>][] = [
  ["/v1/generate", SANDBOX_REQUEST],
  ["/v1/generate", { ...SANDBOX_REQUEST, stream: true }],
  ["/v1/chat/completions", SANDBOX_REQUEST],
  ["/v1/chat/completions", { ...SANDBOX_REQUEST, stream: true }],
  ["/v1/completions", { model: SANDBOX_MODEL, prompt: "Once", max_tokens: 10 }],
  ["/v1/completions", { model: SANDBOX_MODEL, prompt: "Once", max_tokens: 10, stream: true }],
  ["/v1/responses", { model: SANDBOX_MODEL, input: "hi", max_output_tokens: 10 }],
  ["/v1/responses", { model: SANDBOX_MODEL, input: "hi", max_output_tokens: 10, stream: true }],
  ["/v1/messages", SANDBOX_REQUEST],
  ["/v1/messages", { ...SANDBOX_REQUEST, stream: true }],
  ["/anthropic/v1/messages", SANDBOX_REQUEST],
  ["/v1/embed", { model: VECTOR_MODEL, input: texts.input }],
  ["/v1/embeddings", texts],
];

type LedgerRow = {
  readonly id: string;
  readonly amount: number;
  readonly reason: string;
  readonly input: number;
  readonly output: number;
  readonly request_id: string;
};

/**
 * Locks the rows that holds and settlements of the account need, to simulate a slow database, until it is
 * released.
 */
export async function lockMoney({ app: { database } }: Metered, { accountId }: TestKey) {
  const locked = Promise.withResolvers<void>();
  const free = Promise.withResolvers<void>();
  const done = database.owner.begin(async (sql) => {
    await sql`SELECT 1 FROM vx.lanes WHERE lane = vx.lane_of(${accountId}) FOR UPDATE`;
    locked.resolve();
    await free.promise;
  });
  await locked.promise;
  return {
    /** Resolves when a hold or a settlement waits for the lock. Servers that sweep the lane may also wait. */
    wanted: () =>
      vi.waitFor(async () => {
        const waiting = await database.owner`
            SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
              AND query ~ 'vx\\.bill\\('`;
        expect(waiting.length).toBeGreaterThan(0);
      }),
    free: async () => {
      free.resolve();
      await done;
    },
  };
}

/** Starts a call of the model "fake", whose reply continues after so many pieces when `end` is called. */
export async function running<Answer>({ upstream }: Pick<Metered, "upstream">, start: () => Answer, pieces = 1) {
  const rest = Promise.withResolvers<void>();
  const before = upstream.calls.length;
  upstream.next(replyWhen(rest.promise, pieces));
  const answer = start();
  await upstream.until(({ calls }) => calls.length > before);
  const end = () => {
    rest.resolve();
    return answer;
  };
  return { call: upstream.calls[before] as FakeCall, end };
}

/**
 * Servers on one database whose model "fake" is a fake upstream, with an operator and access to the ledger.
 */
export type Metered = {
  readonly apps: readonly TestApp[];
  readonly app: TestApp;
  readonly upstream: FakeUpstream;
  readonly operator: Operator;
  readonly modelsFile: string;
  /** Creates an account with this balance and a key with practically no limits. */
  payer(balanceMicros: bigint): Promise<TestKey>;
  account(key: TestKey): Promise<{ balance: number; held: number }>;
  /** The ledger rows of generations, oldest first. */
  rows(key: TestKey): Promise<LedgerRow[]>;
  /** The sum of a metric over all servers. */
  metric(name: string): Promise<number>;
  /** Resolves when the servers have detected that all callers have disconnected. */
  gone(): Promise<void>;
  /** Simulates half a minute with heartbeats of all servers except the one with holds of the account. */
  missServerOf(key: TestKey): Promise<void>;
  /** Resolves when no generation runs or settles. */
  settled(): Promise<void>;
  /** Checks that the ledger is consistent and nothing is held. */
  check(): Promise<void>;
  /** Checks, then stops everything. */
  stop(): Promise<void>;
};

type MeteredOptions = { readonly servers?: number; readonly env?: Record<string, string> };

let shared: Promise<Metered> | undefined;

/** Those that the files of a worker share: see useTestApp. The upstream forgets what it was told before. */
export function useMetered(): Metered {
  const metered = started(async () => {
    shared ??= startMetered();
    const { upstream, check, ...rest } = await shared;
    upstream.reset();
    const apps = rest.apps.map(sinceNow);
    return { ...rest, upstream, check, apps, app: apps[0] as TestApp, stop: check };
  });
  tellOnFailure(() => metered.apps);
  return metered;
}

/** The same while the tests run: for tests that need settings of their own. */
export function useOwnMetered(options?: MeteredOptions): Metered {
  const metered = started(() => startMetered(options));
  tellOnFailure(() => metered.apps);
  return metered;
}

export async function startMetered(options: MeteredOptions = {}): Promise<Metered> {
  const upstream = await FakeUpstream.start();
  const models = createModelsFile(modelsJson(upstream.baseUrl), inject("runFolder"));
  const env = { VX_MODELS: models.path, VX_LOG_LEVEL: "warn", ...options.env };
  const app = await startTestApp({ env });
  const { database } = app;
  const apps = [app];
  while (apps.length < (options.servers ?? 1)) apps.push(await startTestApp({ env, database }));
  const operator = operatorOf(app);
  await operator.putPlan({ name: "tests", rpm: 1_000_000, maxActiveKeys: 100 });
  const { owner } = database;
  const metric = async (name: string) => {
    let sum = 0;
    for (const { adminUrl } of apps) {
      const answer = await fetch(`${adminUrl}/metrics`, { headers: bearer(OPERATOR_TOKEN) });
      sum += Number(new RegExp(`^${name} (\\d+)$`, "m").exec(await answer.text())?.[1]);
    }
    return sum;
  };
  const becomesZero = (name: string) =>
    vi.waitFor(async () => expect(await metric(name)).toBe(0), { interval: 10, timeout: 10_000 });
  const check = async () => {
    expect(await moneyProblems(database)).toEqual([]);
    expect(await owner`SELECT * FROM vx.holds`).toHaveLength(0);
  };
  return {
    apps,
    app,
    upstream,
    operator,
    modelsFile: models.path,
    payer: async (balanceMicros) => {
      const accountId = await createTestAccount(operator, "tests");
      const idempotencyKey = accountId;
      const amountMicros = balanceMicros;
      if (balanceMicros > 0n) await operator.creditAccount({ accountId, amountMicros, reason: "test", idempotencyKey });
      return await createTestKey(operator, { accountId });
    },
    account: async ({ accountId }) => {
      const [row] = await owner<{ balance: number; held: number }[]>`
        SELECT balance_micros::int AS balance, held_micros::int AS held FROM vx.accounts WHERE id = ${accountId}`;
      return { balance: row?.balance ?? 0, held: row?.held ?? 0 };
    },
    rows: async ({ accountId }) =>
      await owner<LedgerRow[]>`
        SELECT id, -amount_micros::int AS amount, reason, input + cached_input + cache_write AS input,
               output + reasoning AS output, request_id
        FROM vx.ledger WHERE account_id = ${accountId} AND kind = 'generation' ORDER BY seq`,
    metric,
    gone: () => becomesZero("vx_running_calls"),
    missServerOf: async ({ accountId }) => {
      await owner`
        UPDATE vx.servers s SET present_since = present_since - interval '30 seconds',
          seen_at = seen_at - CASE WHEN EXISTS (
            SELECT FROM vx.holds h WHERE h.account_id = ${accountId} AND h.server_id = s.id
          ) THEN interval '30 seconds' ELSE '0' END`;
    },
    settled: () => becomesZero("vx_running_generations"),
    check,
    stop: async () => {
      await check();
      for (const one of [...apps].reverse()) await one.stop();
      await upstream.stop();
      models.remove();
    },
  };
}

const ABLE = ["tools", "images", "json_schema", "reasoning"];

export function modelsJson(baseUrl: string): string {
  const model = (id: string, inputPrice: number, outputPrice: number, isWide = false) => ({
    id,
    context_window: isWide ? 10_000_000 : 1_000,
    max_output_tokens: isWide ? 32_000 : 500,
    // Makes holds, and charges without reported usage, easy to compute.
    prompt_overhead_tokens: { base: 0, per_message: 0 },
    input_micros_per_million_tokens: inputPrice,
    output_micros_per_million_tokens: outputPrice,
    upstream: { kind: "openai", base_url: baseUrl, model: "fake-model" },
  });
  return JSON.stringify({
    models: [
      model(MODEL, 1_000_000, 2_000_000),
      model(CHEAP_MODEL, 333_333, 333_333),
      model(WIDE_MODEL, 1, 1, true),
      { ...model(ABLE_MODEL, 1_000_000, 2_000_000), capabilities: ABLE, image_tokens: 100 },
      { ...model(VECTOR_MODEL, 1_000_000, 0), capabilities: ["embeddings"] },
      {
        ...model(SANDBOX_MODEL, 1_000_000, 2_000_000),
        context_window: 100_000,
        image_tokens: 1_000,
        capabilities: ABLE,
        upstream: { kind: "sandbox" },
      },
      { ...model(TEMPLATE_MODEL, 1_000_000, 2_000_000), prompt_overhead_tokens: undefined, default_output_tokens: 100 },
    ],
  });
}
