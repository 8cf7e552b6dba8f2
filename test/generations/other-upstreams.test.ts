// Completions and embeddings of upstreams.
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { afterAll, beforeEach, describe, expect, test, vi } from "vitest";
import { useOwnApp } from "../support/app.ts";
import { type TestKey, useOperator } from "../support/fixtures.ts";
import { createModelsFile } from "../support/models.ts";
import { chargesOf, createPaidKey, failureOf, openAi } from "../support/openai.ts";

type Handler = (response: ServerResponse, body: { readonly input: readonly string[] }) => void;
let handler: Handler;
let received: object[] = [];
const server = createServer(async (request, response) => {
  const body = (await json(request)) as Parameters<Handler>[1];
  received.push({ path: request.url, body });
  handler(response, body);
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));

const model = (id: string, kind: string, capabilities: string[] = []) => ({
  id,
  context_window: 100,
  max_output_tokens: 50,
  prices: { input: 1_000_000, output: 2_000_000 },
  capabilities,
  upstream: { kind, base_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, model: "fake" },
});
const models = [model("coder", "openai"), model("claude", "anthropic"), model("vectors", "openai", ["embeddings"])];
const file = createModelsFile(JSON.stringify({ models }));
const app = useOwnApp({ env: { VX_MODELS: file.path } });
const operator = useOperator(app);
let payer: TestKey;
beforeEach(async () => {
  received = [];
  payer = await createPaidKey(operator);
});
afterAll(async () => {
  file.remove();
  await new Promise((resolve) => server.close(resolve));
});

const send = (type: string, text: string): Handler => {
  return (response) => response.setHeader("content-type", type).end(text);
};
const charges = () => chargesOf(operator, payer);

describe("completions", () => {
  const BODY = { model: "coder", prompt: "def f():", suffix: "return x", max_tokens: 20, stop: "\n\n", seed: 3 };
  const USAGE = { prompt_tokens: 9, completion_tokens: 4, total_tokens: 13 };
  const complete = (more: object = {}) => openAi(app, payer).completions.create({ ...BODY, ...more });
  const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
  const piece = (text: string, finish_reason: string | null = null) => event({ choices: [{ index: 0, text, finish_reason }] });

  test("the upstream gets the prompt and the suffix, and its usage is charged", async () => {
    const events = [piece(" x "), piece("= 1"), piece("", "length"), event({ choices: [], usage: USAGE }), "data: [DONE]\n\n"];
    handler = send("text/event-stream", events.join(""));
    const { choices, usage } = await complete();
    expect(choices).toMatchObject([{ text: " x = 1", finish_reason: "length" }]);
    expect(usage).toMatchObject({ prompt_tokens: 9, completion_tokens: 4, cost_micros: 17 });
    const body = { ...BODY, model: "fake", stop: ["\n\n"], stream: true, stream_options: { include_usage: true } };
    expect(received).toEqual([{ path: "/v1/completions", body }]);
    expect(await charges()).toMatchObject([{ inputTokens: 9n, outputTokens: 4n }]);
  });

  test("a completion that is not streamed is read as well", async () => {
    const choices = [{ index: 0, text: "y", finish_reason: "stop" }];
    handler = send("application/json", JSON.stringify({ choices, usage: USAGE }));
    expect((await complete()).choices).toMatchObject([{ text: "y" }]);
  });

  test.each([
    ["no choices", "application/json", "{}"],
    ["an error", "application/json", '{"error":{"message":"no"}}'],
    ["no end", "text/event-stream", piece("y")],
  ])("a response with %s is a failure, which is free", async (_, type, text) => {
    handler = send(type, text);
    expect((await failureOf(complete())).status).toBe(502);
    expect(await charges()).toEqual([]);
  });

  test("a model whose upstream has no completions is refused", async () => {
    const failure = await failureOf(complete({ model: "claude" }));
    expect(failure).toMatchObject({ status: 400, param: "model" });
    expect(failure.message).toContain("/v1/chat/completions");
  });
});

describe("embeddings", () => {
  const VECTOR = [0.25, 0.5];
  const answer = (usage?: object): Handler => {
    return (response, { input }) => {
      const data = input.map((_, index) => ({ object: "embedding", index, embedding: VECTOR })).reverse();
      send("application/json", JSON.stringify({ object: "list", data, model: "m", usage }))(response, { input });
    };
  };
  const embed = (input: string[], options = {}) => openAi(app, payer).embeddings.create({ model: "vectors", input }, options);

  test("the upstream gets all texts at once, and its usage is charged", async () => {
    handler = answer({ prompt_tokens: 9, total_tokens: 9 });
    const { data, usage } = await embed(["one", "two"]);
    expect(data.map(({ embedding }) => embedding)).toEqual([VECTOR, VECTOR]);
    const body = { model: "fake", input: ["one", "two"], encoding_format: "base64" };
    expect(received).toEqual([{ path: "/v1/embeddings", body }]);
    expect(usage).toMatchObject({ prompt_tokens: 9, cost_micros: 9 });
    expect(await charges()).toMatchObject([{ inputTokens: 9n, amountMicros: -9n }]);
  });

  test("without a usage, the tokens of the texts are counted", async () => {
    handler = answer();
    await embed(["one two", "three"]);
    expect(await charges()).toMatchObject([{ inputTokens: 3n, outputTokens: 0n }]);
  });

  test("each text may fill the context window", async () => {
    handler = answer();
    await embed(Array(5).fill("word ".repeat(60)));
    const failure = await failureOf(embed(["a", "word ".repeat(101)]));
    expect(failure).toMatchObject({ status: 400, code: "context_length_exceeded", param: "input[1]" });
  });

  test("a failed call is not charged", async () => {
    handler = send("application/json", '{"data":[]}');
    expect((await failureOf(embed(["one"]))).status).toBe(502);
    expect(await charges()).toEqual([]);
  });

  test("a disconnect after the request was sent is charged", async () => {
    const controller = new AbortController();
    handler = () => controller.abort();
    await expect(embed(["one two", "three"], { signal: controller.signal })).rejects.toThrow();
    await vi.waitFor(async () => expect(await charges()).toMatchObject([{ inputTokens: 3n, outputTokens: 0n }]));
  });
});
