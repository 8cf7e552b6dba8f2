import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestApp, type TestApp } from "../../support/app.ts";
import { raw } from "../../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../../support/fake-upstreams/fake-upstream.ts";
import { anthropicWire } from "../../support/fake-upstreams/wire.ts";
import { createTestKey, type Operator, operatorOf } from "../../support/fixtures.ts";
import { createModelsFile } from "../../support/models.ts";
import { bearer } from "../../support/protocols.ts";

let openai: FakeUpstream;
let anthropic: FakeUpstream;
let file: ReturnType<typeof createModelsFile>;
let app: TestApp;
let operator: Operator;

beforeAll(async () => {
  openai = await FakeUpstream.start();
  anthropic = await FakeUpstream.start({ wire: anthropicWire });
  const model = ({ kind, baseUrl }: ReturnType<FakeUpstream["settings"]>) => ({
    id: kind,
    context_window: 10_000,
    max_output_tokens: 1_000,
    prompt_overhead_tokens: { base: 1_000 },
    // Micros per token, so that each meter has its own decimal digit in the cost.
    prices: {
      input: 1_000_000,
      cached_input: 100_000,
      cache_write: 10_000_000,
      output: 100_000_000,
      reasoning: 1_000_000_000,
      request: 1,
    },
    upstream: { kind, base_url: baseUrl, model: "fake-model" },
  });
  const models = [openai, anthropic].map((upstream) => model(upstream.settings()));
  file = createModelsFile(JSON.stringify({ models }));
  app = await startTestApp({ env: { VX_MODELS: file.path } });
  operator = operatorOf(app);
});
afterAll(async () => {
  expect(await operator.audit({})).toMatchObject({ consistent: true });
  await app.stop();
  await Promise.all([openai.stop(), anthropic.stop()]);
  file.remove();
});

/** The ledger entry of a call. */
async function entryOf(model: string) {
  const key = await createTestKey(operator);
  const { accountId } = key;
  await operator.creditAccount({
    accountId,
    amountMicros: 10_000_000n,
    reason: "test",
    idempotencyKey: "1",
  });
  const answer = await fetch(`${app.url}/v1/generate`, {
    method: "POST",
    headers: { ...bearer(key.secret), "content-type": "application/json" },
    body: JSON.stringify({ model, messages: [{ role: "user", content: "Hi" }], max_tokens: 50 }),
  });
  expect(answer.status).toBe(200);
  const { usage } = (await answer.json()) as { usage: Record<string, number> };
  const { entries } = await operator.listLedgerEntries({ accountId, pageSize: 1 });
  const [entry] = entries;
  expect(usage.cost_micros).toBe(-Number(entry?.amountMicros));
  expect(usage.cached_input_tokens).toBe(Number(entry?.cachedInputTokens));
  return entry;
}

const chunks = (...values: object[]) =>
  [...values.map((value) => JSON.stringify({ id: "c", model: "m", ...value })), "[DONE]"]
    .map((text) => `data: ${text}\n\n`)
    .join("");
const said = { choices: [{ index: 0, delta: { content: "Hello" }, finish_reason: "stop" }] };
const reports = (input: number, cached: number, output: number, reasoning: number) => ({
  choices: [],
  usage: {
    prompt_tokens: input,
    completion_tokens: output,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  },
});

test("cached and reasoning tokens of an OpenAI server are part of its totals", async () => {
  openai.next(raw(chunks(said, reports(30, 10, 9, 4))));
  expect(await entryOf("openai")).toMatchObject({
    amountMicros: -(20n + 1n + 500n + 4_000n + 1n),
    inputTokens: 30n,
    cachedInputTokens: 10n,
    cacheWriteTokens: 0n,
    outputTokens: 9n,
    reasoningTokens: 4n,
  });
});

test("more cached tokens than input, and more reasoning than output, count as all of them", async () => {
  openai.next(raw(chunks(said, reports(30, 50, 9, 12))));
  expect(await entryOf("openai")).toMatchObject({
    amountMicros: -(3n + 9_000n + 1n),
    inputTokens: 30n,
    cachedInputTokens: 30n,
    outputTokens: 9n,
    reasoningTokens: 9n,
  });
});

test("the last of several usage reports is charged", async () => {
  openai.next(raw(chunks(said, reports(30, 10, 9, 4), reports(31, 10, 8, 4))));
  expect(await entryOf("openai")).toMatchObject({
    amountMicros: -(21n + 1n + 400n + 4_000n + 1n),
    inputTokens: 31n,
    cachedInputTokens: 10n,
    outputTokens: 8n,
    reasoningTokens: 4n,
  });
});

test("a usage report without tokens is ignored, and the server counts the tokens", async () => {
  openai.next(raw(chunks(said, reports(0, 0, 0, 0))));
  expect(await entryOf("openai")).toMatchObject({ inputTokens: 5n, outputTokens: 1n });
});

test("the last of two usage reports is charged, once", async () => {
  openai.next(raw(chunks({ ...said, ...reports(10, 0, 1, 0), choices: said.choices }, reports(30, 10, 9, 4))));
  expect(await entryOf("openai")).toMatchObject({
    amountMicros: -4_522n,
    inputTokens: 30n,
    outputTokens: 9n,
  });
});

test("tokens of an Anthropic server that the cache read or wrote are added to its input", async () => {
  const events = [
    {
      type: "message_start",
      message: { usage: { input_tokens: 20, cache_read_input_tokens: 10, cache_creation_input_tokens: 3 } },
    },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 5 } },
    { type: "message_stop" },
  ];
  anthropic.next(raw(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")));
  expect(await entryOf("anthropic")).toMatchObject({
    amountMicros: -(20n + 1n + 30n + 500n + 1n),
    inputTokens: 33n,
    cachedInputTokens: 10n,
    cacheWriteTokens: 3n,
    outputTokens: 5n,
  });
});
