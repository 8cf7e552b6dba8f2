import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, vi } from "vitest";
import { vx } from "../cli/support.ts";
import { sendJson } from "../rest/send-json.ts";
import { OPERATOR_TOKEN, startTestApp, type TestApp } from "../support/app.ts";
import { FakeStripe } from "../support/fake-stripe.ts";
import { createTestKey, type Operator, operatorOf, type TestKey } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { bearer } from "../support/protocols.ts";

const QUARTER_MS = 900_000;
const MONTHS = 3;
/** The clock of the database is at most this far from that of the machine. */
const RANGE_MS = 3_600_000;

/** What the operator pays for a million tokens, and for each request. The model "uncosted" has no cost. */
const COSTS = {
  tiered: { input: 7_000_001, output: 21_000_003, cached_input: 700_003, request: 3 },
  cached: { input: 5_000_003, output: 19_000_007, cache_write: 6_000_011, cache_write_1h: 9_000_013 },
};

const modelsFile = (port: number, inputPrice: number) => `models:
  - id: tiered
    context_window: 10000
    max_output_tokens: 1000
    prices: {input: ${inputPrice}, cached_input: 1100003, output: 30000011, reasoning: 33000013, request: 7, tiers: [
      {above_input_tokens: 300, input: 24000017, output: 60000019}, {above_input_tokens: 700, input: 9000007, output: 11000027}]}
    upstream: {kind: openai, base_url: "http://127.0.0.1:${port}/v1", model: x, cost: ${JSON.stringify(COSTS.tiered)}}
  - id: cached
    context_window: 10000
    max_output_tokens: 1000
    prices: {input: 8000009, cached_input: 800011, cache_write: 10000019, cache_write_1h: 16000021, output: 40000037}
    upstream: {kind: anthropic, base_url: "http://127.0.0.1:${port}", model: x, cost: ${JSON.stringify(COSTS.cached)}}
  - id: uncosted
    context_window: 10000
    max_output_tokens: 1000
    prices: {input: 333333, output: 666667}
    upstream: {kind: openai, base_url: "http://127.0.0.1:${port}/v1", model: x}
`;

/** The usage of a call, which the prompt tells the upstream to report. Disjoint counts. */
type Usage = { readonly input: number; readonly cached?: number; readonly write?: number; readonly write1h?: number } & {
  readonly output: number;
  readonly reasoning?: number;
};

/** Answers in the dialects of OpenAI and Anthropic. */
async function startUpstream(): Promise<Server> {
  const server = createServer(async (request, response) => {
    const { messages } = (await json(request)) as { messages: { content: string | { text: string }[] }[] };
    const content = messages[0]?.content ?? "";
    const prompt = typeof content === "string" ? content : (content[0]?.text ?? "");
    const usage = JSON.parse(prompt.trim()) as Usage;
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(request.url?.endsWith("/messages") ? anthropicReply(usage) : openaiReply(usage));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

function openaiReply({ input, cached = 0, output, reasoning = 0 }: Usage): string {
  const usage = {
    prompt_tokens: input + cached,
    completion_tokens: output + reasoning,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
  const chunks = [
    { choices: [{ index: 0, delta: { role: "assistant", content: "ok" }, finish_reason: null }] },
    { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    { choices: [], usage },
  ];
  return `${chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join("")}data: [DONE]\n\n`;
}

function anthropicReply({ input, cached = 0, write = 0, write1h = 0, output }: Usage): string {
  const usage = {
    input_tokens: input,
    cache_read_input_tokens: cached,
    cache_creation_input_tokens: write + write1h,
    cache_creation: { ephemeral_5m_input_tokens: write, ephemeral_1h_input_tokens: write1h },
  };
  const message = { id: "msg_1", type: "message", role: "assistant", content: [], usage };
  const delta = { stop_reason: "end_turn", stop_sequence: null };
  const events = [
    { type: "message_start", message },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "ok" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta, usage: { output_tokens: output } },
    { type: "message_stop" },
  ];
  return events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("");
}

/** Three accounts over three months, with every kind of ledger entry, and the files that the product exports about them. */
export class Books {
  readonly #app: TestApp;
  readonly #stripe: FakeStripe;
  readonly #upstream: Server;
  readonly #models: ReturnType<typeof createModelsFile>;
  readonly #operator: Operator;
  #accounts: readonly TestKey[] = [];
  /** What was agreed: discounts in hundredths of a percent, by account and version of its prices, and re-ratings by their reasons. */
  readonly #discounts: Record<string, number> = {};
  readonly #reratings: Record<string, object> = {};

  private constructor(app: TestApp, stripe: FakeStripe, upstream: Server, models: ReturnType<typeof createModelsFile>) {
    this.#app = app;
    this.#stripe = stripe;
    this.#upstream = upstream;
    this.#models = models;
    this.#operator = operatorOf(app);
  }

  static async start(): Promise<Books> {
    const [stripe, upstream] = await Promise.all([FakeStripe.start(), startUpstream()]);
    const models = createModelsFile(modelsFile((upstream.address() as AddressInfo).port, 12_000_007));
    const app = await startTestApp({ env: { ...stripe.env, VX_MODELS: models.path, VX_LOG_LEVEL: "warn" } });
    return new Books(app, stripe, upstream, models);
  }

  async stop(): Promise<void> {
    await this.#app.stop();
    await this.#stripe.stop();
    this.#upstream.close();
    this.#models.remove();
  }

  async write(): Promise<void> {
    const scopes = ["generate", "read", "billing"];
    const create = () => createTestKey(this.#operator, { scopes });
    this.#accounts = [await create(), await create(), await create()];
    const [first, second, third] = this.#accounts as [TestKey, TestKey, TestKey];
    await this.#firstMonth(first, second, third);
    await this.#moveTo(2);
    await this.#secondMonth(first, second, third);
    await this.#moveTo(1);
    await this.#thirdMonth(first, second, third);
  }

  async #firstMonth(first: TestKey, second: TestKey, third: TestKey): Promise<void> {
    await this.#credit(first, 20_000_000n, "invoice 1001");
    await this.#credit(first, 3_000n, "promotional: welcome", { promotional: true });
    await this.#expiringCredit(first, async () => {
      await this.#call(first, "tiered", { input: 100, output: 30 });
    });
    for (const input of [299, 300, 301, 700, 701])
      await this.#call(first, "tiered", { input: input - 40, cached: 40, output: 17, reasoning: 5 });
    await this.#topUp(second, 5_000_000);
    await this.#discount(second, "tiered", 1_234);
    for (const input of [1, 350]) await this.#call(second, "tiered", { input, output: 3 });
    await this.#call(second, "cached", { input: 13, cached: 17, write: 19, write1h: 23, output: 29 });
    const ledgerId = await this.#call(second, "cached", { input: 11, output: 7 });
    await this.#refund(second, ledgerId, 100n);
    await this.#refund(second, ledgerId, 0n);
    await this.#credit(third, 1_000_000n, "promotional: trial", { promotional: true });
    for (const output of [1, 2, 3]) await this.#call(third, "uncosted", { input: 1, output });
  }

  async #secondMonth(first: TestKey, second: TestKey, third: TestKey): Promise<void> {
    // The prices of the model change.
    this.#models.write(modelsFile((this.#upstream.address() as AddressInfo).port, 13_000_009));
    await this.#app.reload();
    await this.#operator.adjustAccount({
      accountId: first.accountId,
      amountMicros: -1_234_567n,
      reason: "credited twice",
      idempotencyKey: randomUUID(),
    });
    const calls: string[] = [];
    for (const input of [20, 320, 720]) {
      calls.push(await this.#call(first, "tiered", { input, output: 11, reasoning: 2 }));
      await this.#call(second, "tiered", { input, cached: 5, output: 13 });
    }
    await this.#refund(first, calls[1] ?? "", 50n);
    // Both directions: some calls cost less than before, others more.
    await this.#rerate("wrong prices in the file", 12_500_003n, 61_000_001n);
    await this.#rerate("wrong again", 14_000_003n, 29_000_001n);
    const topUpId = await this.#topUp(second, 7_000_000);
    await this.#deliver(this.#stripe.refund(topUpId, 250));
    await this.#deliver(this.#stripe.dispute(topUpId, 700));
    await this.#deliver(this.#stripe.closeDispute(topUpId, "won"));
    // What was paid is spent before it is disputed: the rest is owed.
    const spent = await this.#topUp(third, 5_000_000);
    await this.#operator.adjustAccount({
      accountId: third.accountId,
      amountMicros: -5_900_000n,
      reason: "support",
      idempotencyKey: randomUUID(),
    });
    await this.#deliver(this.#stripe.dispute(spent, 500));
  }

  async #thirdMonth(first: TestKey, second: TestKey, third: TestKey): Promise<void> {
    await this.#credit(third, 10_000_000n, "invoice 1002");
    await this.#discount(third, "", 3_333);
    await this.#operator.setAccountPrices({
      accountId: second.accountId,
      model: "cached",
      change: { case: "prices", value: { input: 1_000_003n, output: 2_000_003n, cacheWrite: 5n, cacheWrite1h: 7n } },
    });
    for (const key of this.#accounts) {
      await this.#call(key, "uncosted", { input: 2, output: 2 });
      await this.#call(key, "cached", { input: 31, cached: 3, write: 5, write1h: 37, output: 41 });
      await this.#call(key, "tiered", { input: 280, cached: 30, output: 9, reasoning: 1 });
    }
    await this.#expiringCredit(second, async () => undefined);
    await this.#topUp(first, 9_990_000);
  }

  /** Moves what has happened this month, as if it had happened some months ago. */
  async #moveTo(monthsAgo: number): Promise<void> {
    const { owner } = this.#app.database;
    const now = new Date();
    const then = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - monthsAgo, 10);
    const quarters = Math.floor((now.getTime() - then) / QUARTER_MS);
    const by = `${quarters * 15} minutes`;
    const [month] = [new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth()))];
    await owner`UPDATE vx.ledger SET created_at = created_at - ${by}::interval WHERE created_at >= ${month}`;
    await owner`
      UPDATE vx.usage_quarters SET quarter = quarter - ${quarters} WHERE quarter >= ${month.getTime() / QUARTER_MS}`;
    await owner`UPDATE vx.accounts SET last_at = last_at - ${by}::interval WHERE last_at >= ${month}`;
  }

  async #credit(
    { accountId }: TestKey,
    amountMicros: bigint,
    reason: string,
    more: { promotional?: boolean; expiresAt?: ReturnType<typeof timestampFromDate> } = {},
  ): Promise<void> {
    await this.#operator.creditAccount({ accountId, amountMicros, reason, idempotencyKey: randomUUID(), ...more });
  }

  /** A credit that expires after these calls. */
  async #expiringCredit(key: TestKey, use: () => Promise<void>): Promise<void> {
    const expiries = async () => {
      const { entries } = await this.#operator.listLedgerEntries({ accountId: key.accountId, kind: "expiry" });
      return entries.length;
    };
    const before = await expiries();
    const expiresAt = timestampFromDate(new Date(Date.now() + 2_000));
    await this.#credit(key, 2_000_000n, "paid, valid for a moment", { expiresAt });
    await use();
    await vi.waitFor(async () => expect(await expiries()).toBe(before + 1), { timeout: 15_000, interval: 100 });
  }

  async #call(key: TestKey, model: string, usage: Usage): Promise<string> {
    // The input is at most the bytes of the prompt.
    const content = JSON.stringify(usage).padEnd(1_000);
    const request = { model, messages: [{ role: "user", content }], max_tokens: 60 };
    const { status, body } = await this.#send(key, "POST", "/v1/generate", request);
    expect(status, JSON.stringify(body)).toBe(200);
    return (body as { id: string }).id;
  }

  async #discount({ accountId }: TestKey, model: string, value: number): Promise<void> {
    const { prices } = await this.#operator.setAccountPrices({ accountId, model, change: { case: "discountBps", value } });
    this.#discounts[`${accountId}/${prices?.version}`] = value;
  }

  async #refund({ accountId }: TestKey, entryId: string, amountMicros: bigint): Promise<void> {
    await this.#operator.refundEntry({ accountId, entryId, amountMicros, reason: "bad answer", idempotencyKey: randomUUID() });
  }

  async #rerate(reason: string, input: bigint, output: bigint): Promise<void> {
    const now = Date.now();
    const ofTier = { above_input_tokens: 500, input: Number(input / 2n), cached_input: Number(input), output: Number(output) };
    this.#reratings[reason] = { input: Number(input), output: Number(output), tiers: [ofTier] };
    const rates = { input, cachedInput: input, cacheWrite: input, cacheWrite1h: input, output, reasoning: output };
    const rows = this.#operator.rerate({
      model: "tiered",
      from: timestampFromDate(new Date(now - RANGE_MS)),
      to: timestampFromDate(new Date(now + RANGE_MS)),
      prices: { ...rates, tiers: [{ aboveInputTokens: 500n, ...rates, input: input / 2n }] },
      reason,
      apply: true,
    });
    let adjusted = 0n;
    for await (const row of rows) adjusted += row.adjusted;
    expect(adjusted).toBeGreaterThan(3n);
  }

  async #topUp(key: TestKey, amountMicros: number): Promise<string> {
    const { status, body } = await this.#send(key, "POST", "/v1/topups", { amount_micros: amountMicros });
    expect(status, JSON.stringify(body)).toBe(200);
    const { id } = (body as { topup: { id: string } }).topup;
    for (const event of this.#stripe.pay(id)) await this.#deliver(event);
    return id;
  }

  async #deliver(event: Parameters<FakeStripe["deliver"]>[0]): Promise<void> {
    expect(await this.#stripe.deliver(event, this.#app.url)).toBe(200);
  }

  #send({ secret }: TestKey, verb: string, path: string, body?: unknown) {
    return sendJson(this.#app.url, { verb, path, secret, ...(body === undefined ? {} : { body }) });
  }

  /** The files of an accountant, and in server.json what the server says itself. */
  async export(folder: string): Promise<void> {
    mkdirSync(folder, { recursive: true });
    const put = (name: string, text: string) => writeFileSync(join(folder, name), text);
    const now = new Date();
    const firstOf = (offset: number) => new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + offset)).toISOString();
    const months = Array.from({ length: MONTHS }, (_, i) => firstOf(i + 1 - MONTHS).slice(0, 7));
    const range = [
      "--from",
      firstOf(1 - MONTHS),
      "--to",
      new Date(Math.ceil(Date.now() / QUARTER_MS) * QUARTER_MS).toISOString(),
    ];
    const accounts: Record<string, unknown> = {};
    for (const key of this.#accounts) {
      const { accountId } = key;
      put(`ledger-${accountId}.csv`, await this.#run("ledger", "list", accountId, "--csv"));
      const statements: Record<string, unknown> = {};
      for (const month of months) {
        const path = `/v1/statements/${month}`;
        statements[month] = (await this.#send(key, "GET", path)).body;
        const headers = { ...bearer(key.secret), accept: "text/csv" };
        put(`statement-${accountId}-${month}.csv`, await (await fetch(`${this.#app.url}${path}`, { headers })).text());
      }
      accounts[accountId] = { account: (await this.#send(key, "GET", "/v1/account")).body, statements };
    }
    const margin = await this.#run("usage", "margin", "--group-by", "month,account", "--json", ...range);
    const contracts = { costs: COSTS, reratings: this.#reratings, discounts: this.#discounts };
    put("server.json", JSON.stringify({ months, accounts, margin: JSON.parse(margin), contracts }));
    put("usage.csv", await this.#run("usage", "export", "--format", "csv", "--costs", ...range));
    for (const version of ["1.2", "1.3"]) {
      const focus = ["--format", "focus", "--focus-version", version, "--costs"];
      put(`focus-${version}.csv`, await this.#run("usage", "export", ...focus, ...range));
    }
  }

  async #run(...args: string[]): Promise<string> {
    const env = { VX_ADMIN_URL: this.#app.adminUrl, VX_ADMIN_TOKEN: OPERATOR_TOKEN };
    const { code, stdout, stderr } = await vx(args, env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return stdout;
  }
}
