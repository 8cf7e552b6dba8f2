// What is charged for the usage that upstreams report, and for models without prices of tokens.
import { afterAll, describe, expect, test } from "vitest";
import { post } from "../support/any-json.ts";
import { useOwnApp } from "../support/app.ts";
import { raw } from "../support/fake-upstreams/behaviours.ts";
import { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import { anthropicWire } from "../support/fake-upstreams/wire.ts";
import { createTestKey, useOperator } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";

const openai = await FakeUpstream.start();
const anthropic = await FakeUpstream.start({ wire: anthropicWire });
const model = (id: string, prices: object, upstream: object) => ({
  id,
  context_window: 10_000,
  max_output_tokens: 1_000,
  prompt_overhead_tokens: { base: 1_000 },
  image_tokens: 10,
  capabilities: ["images"],
  prices,
  upstream,
});
// Micros per token, so that each meter has its own decimal digit in the cost.
const METERS = {
  input: 1_000_000,
  cached_input: 100_000,
  cache_write: 10_000_000,
  output: 100_000_000,
  reasoning: 1_000_000_000,
  request: 1,
};
const sandbox = (id: string, prices: object) => model(id, { input: 0, output: 0, ...prices }, { kind: "sandbox" });
const models = [
  ...[openai, anthropic].map((upstream) => {
    const { kind, baseUrl } = upstream.settings();
    return model(kind, METERS, { kind, base_url: baseUrl, model: "fake-model" });
  }),
  sandbox("free", {}),
  sandbox("flat", { request: 700 }),
  sandbox("pictures", { request: 5, image: 100 }),
];
const file = createModelsFile(JSON.stringify({ models }));
const app = useOwnApp({ env: { VX_MODELS: file.path } });
const operator = useOperator(app);
afterAll(async () => {
  expect(await operator.audit({})).toMatchObject({ consistent: true });
  await Promise.all([openai.stop(), anthropic.stop()]);
  file.remove();
});

async function call(model: string, amountMicros: bigint, images = 0) {
  const key = await createTestKey(operator);
  const { accountId } = key;
  const credit = { accountId, amountMicros, reason: "test", idempotencyKey: "1" };
  if (amountMicros > 0n) await operator.creditAccount(credit);
  const image = { type: "image_url", image_url: { url: "https://x.example/a.png" } };
  const content = images === 0 ? "Hi" : [{ type: "text", text: "Hi" }, ...Array(images).fill(image)];
  const body = { model, messages: [{ role: "user", content }], max_tokens: 50 };
  const { status, json } = await post(app, key, images === 0 ? "/v1/generate" : "/v1/chat/completions", body);
  const { account } = await operator.getAccount({ accountId });
  expect(account?.heldMicros).toBe(0n);
  return { accountId, status, json, balance: account?.balanceMicros };
}

/** The ledger entry of a call. */
async function entryOf(model: string) {
  const { accountId, status, json } = await call(model, 10_000_000n);
  expect(status).toBe(200);
  const [entry] = (await operator.listLedgerEntries({ accountId, pageSize: 1 })).entries;
  expect(json.usage.cost_micros).toBe(-Number(entry?.amountMicros));
  expect(json.usage.cached_input_tokens).toBe(Number(entry?.cachedInputTokens));
  return entry;
}

describe("an OpenAI server", () => {
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

  // Without a cost, because the server counts the tokens.
  test.each([
    ["cached and reasoning tokens are part of the totals", [said, reports(30, 10, 9, 4)], 4_522n, [30n, 10n, 9n, 4n]],
    [
      "more cached tokens than input, and more reasoning than output, count as all",
      [said, reports(30, 50, 9, 12)],
      9_004n,
      [30n, 30n, 9n, 9n],
    ],
    ["the last of several reports is charged", [said, reports(30, 10, 9, 4), reports(31, 10, 8, 4)], 4_423n, [31n, 10n, 8n, 4n]],
    [
      "the last of two reports is charged, once",
      [{ ...reports(10, 0, 1, 0), ...said }, reports(30, 10, 9, 4)],
      4_522n,
      [30n, 10n, 9n, 4n],
    ],
    ["a report without tokens is ignored, and the server counts the tokens", [said, reports(0, 0, 0, 0)], 106n, [5n, 0n, 1n, 0n]],
  ])("%s", async (_, chunks, micros, [inputTokens, cachedInputTokens, outputTokens, reasoningTokens]) => {
    const events = [...chunks.map((chunk) => JSON.stringify({ id: "c", model: "m", ...chunk })), "[DONE]"];
    openai.next(raw(events.map((text) => `data: ${text}\n\n`).join("")));
    const tokens = { inputTokens, cachedInputTokens, cacheWriteTokens: 0n, outputTokens, reasoningTokens };
    expect(await entryOf("openai")).toMatchObject({ amountMicros: -micros, ...tokens });
  });
});

test("tokens of an Anthropic server that the cache read or wrote are added to its input", async () => {
  const usage = { input_tokens: 20, cache_read_input_tokens: 10, cache_creation_input_tokens: 3 };
  const events = [
    { type: "message_start", message: { usage } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
    { type: "content_block_stop", index: 0 },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 5 } },
    { type: "message_stop" },
  ];
  anthropic.next(raw(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join("")));
  const tokens = { inputTokens: 33n, cachedInputTokens: 10n, cacheWriteTokens: 3n, outputTokens: 5n };
  expect(await entryOf("anthropic")).toMatchObject({ amountMicros: -(20n + 1n + 30n + 500n + 1n), ...tokens });
});

test.each([
  ["a free model needs no balance", "free", 0n, 0, 200, 0n],
  ["a flat price per request is charged once, whatever the tokens", "flat", 1_000n, 0, 200, 300n],
  ["a balance below the flat price is refused, and nothing is charged", "flat", 699n, 0, 402, 699n],
  ["a price per image is charged for each image of the request", "pictures", 1_000n, 3, 200, 695n],
  ["a balance below the price of the images is refused", "pictures", 304n, 3, 402, 304n],
] as const)("%s", async (_, model, funds, images, status, balance) => {
  const answer = await call(model, funds, images);
  expect(answer).toMatchObject({ status, balance });
  expect(answer.json.error?.code).toBe(status === 402 ? "insufficient_balance" : undefined);
});
