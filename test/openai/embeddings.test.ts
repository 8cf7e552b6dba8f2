import { createClient } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { encode } from "gpt-tokenizer/encoding/cl100k_base";
import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { EmbedService } from "../../gen/vx/v1/embed_pb.js";
import { sendJson } from "../rest/send-json.ts";
import { useTestApp } from "../support/app.ts";
import { useOperator } from "../support/fixtures.ts";
import { chargesOf, createPaidKey, failureOf, openAi, SMALL, said, usePaidKey } from "../support/openai.ts";
import { bearer } from "../support/protocols.ts";
import { started } from "../support/started.ts";
import { turnsOf } from "../support/turns.ts";

const EMBED = "vx-sandbox-embed";
const MODEL = { model: EMBED };

const app = useTestApp();
const operator = useOperator(app);
const key = usePaidKey(app);
const client = started(() => openAi(app, key));

type Request = Partial<OpenAI.EmbeddingCreateParams> & { input: OpenAI.EmbeddingCreateParams["input"] };

async function vectorsOf(request: Request, from = client): Promise<number[][]> {
  const { data } = await from.embeddings.create({ ...MODEL, ...request });
  expect(data.map(({ index }) => index)).toEqual(data.map((_, i) => i));
  return data.map(({ embedding }) => embedding);
}

function nearness(one: readonly number[] = [], other: readonly number[] = []): number {
  return one.reduce((sum, value, i) => sum + value * (other[i] ?? 0), 0);
}

const post = (path: string, body: object, headers: Record<string, string> = {}) =>
  sendJson(app.url, { verb: "POST", path, body, secret: key.secret, headers });

describe("vectors", () => {
  test("have the length 1, and similar texts are nearer to each other", async () => {
    const [hold, holds, rain] = await vectorsOf({
      input: ["A hold reserves the cost.", "Holds reserve the costs.", "It rains in spring"],
    });
    expect(hold).toHaveLength(256);
    expect(nearness(hold, hold)).toBeCloseTo(1, 5);
    expect(nearness(hold, holds)).toBeGreaterThan(nearness(hold, rain) + 0.2);
  });

  test("are the same in base64, as numbers, and for a single text", async () => {
    const input = ["What is a ledger?"];
    const [base64] = await vectorsOf({ input });
    expect(await vectorsOf({ input, encoding_format: "float" })).toEqual([base64]);
    expect(await vectorsOf({ input: input[0] as string })).toEqual([base64]);
  });

  test("have the requested number of dimensions", async () => {
    expect((await vectorsOf({ input: "text", dimensions: 3 }))[0]).toHaveLength(3);
    expect((await vectorsOf({ input: "text", dimensions: 8_192 }))[0]).toHaveLength(8_192);
  });

  test("of tokens are those of their text", async () => {
    const texts = ["What is a ledger?", "<|endoftext|> Überraschung 🎈"];
    const tokens = texts.map((text) => encode(text, { disallowedSpecial: new Set() }));
    expect(await vectorsOf({ input: tokens })).toEqual(await vectorsOf({ input: texts }));
    expect(await vectorsOf({ input: tokens[0] ?? [] })).toEqual(await vectorsOf({ input: texts[0] as string }));
  });

  test("have the same order over REST, gRPC and OpenAI's API", async () => {
    const input = ["one", "two", "three"];
    const expected = await vectorsOf({ input, dimensions: 4 });
    const rest = await post("/v1/embed", { ...MODEL, input, dimensions: 4 });
    expect(rest.body).toMatchObject({
      id: expect.stringMatching(/^gen_/),
      model: EMBED,
      embeddings: expected.map((values, index) => ({ index, values })),
      usage: { input_tokens: 3, output_tokens: 0 },
    });
    const rpc = createClient(EmbedService, createGrpcTransport({ baseUrl: app.url }));
    const response = await rpc.embed({ ...MODEL, input, dimensions: 4 }, { headers: bearer(key.secret) });
    expect(response.embeddings.map(({ values }) => values)).toEqual(expected);
  });
});

test("a million numbers are written in several turns", async () => {
  const input = Array.from({ length: 256 }, (_, i) => `text ${i}`);
  const call = async () => {
    expect((await post("/v1/embeddings", { ...MODEL, input, dimensions: 4_096 })).status).toBe(200);
  };
  // A turn for each four vectors when they are written, and for each sixteen when they are made.
  expect(await turnsOf(call)).toBeGreaterThanOrEqual(80);
});

describe("the charge", () => {
  test("is the price of the input tokens", async () => {
    const payer = await createPaidKey(operator);
    const { usage } = await openAi(app, payer).embeddings.create({ ...MODEL, input: ["one two", "three"] });
    expect(usage).toMatchObject({ prompt_tokens: 3, total_tokens: 3, cost_micros: 1 });
    expect(await chargesOf(operator, payer)).toMatchObject([
      { model: EMBED, inputTokens: 3n, outputTokens: 0n, amountMicros: -1n },
    ]);
  });

  test("is zero for a failed call", async () => {
    const payer = await createPaidKey(operator);
    const failed = openAi(app, payer).embeddings.create({ ...MODEL, input: "[[fail_after=0]]" });
    expect((await failureOf(failed)).status).toBe(502);
    expect(await chargesOf(operator, payer)).toEqual([]);
  });

  test("is made once for a retry, which gets the same vectors", async () => {
    const payer = await createPaidKey(operator);
    const headers = { "idempotency-key": "once" };
    const call = () => openAi(app, payer).embeddings.create({ ...MODEL, input: ["one", "two"] }, { headers });
    const first = await call();
    expect(await call()).toEqual(first);
    expect(await chargesOf(operator, payer)).toHaveLength(1);
  });
});

describe("a call is refused:", () => {
  test.each<[string, object, string]>([
    ["no texts", { input: [] }, "input"],
    ["an empty text", { input: "" }, "input"],
    ["an empty text among others", { input: ["a", ""] }, "input[1]"],
    ["an empty list of tokens", { input: [[1], []] }, "input[1]"],
    ["unknown tokens", { input: [[1], [100_261]] }, "input[1]"],
    ["a fraction", { input: [1.5] }, "input"],
    ["mixed forms", { input: [[1, "a"]] }, "input[0]"],
    ["an object", { input: { text: "a" } }, "input"],
    ["too many texts", { input: Array.from({ length: 2_049 }, () => "a") }, "input"],
    ["a long text", { input: ["a", "x ".repeat(8_193)] }, "input[1]"],
    ["no dimensions", { input: "a", dimensions: 0 }, "dimensions"],
    ["too many dimensions", { input: "a", dimensions: 8_193 }, "dimensions"],
    ["too many values", { input: Array.from({ length: 1_025 }, () => "a"), dimensions: 4_096 }, "dimensions"],
    ["an unknown form", { input: "a", encoding_format: "int8" }, "encoding_format"],
    ["a chat model", { input: "a", model: SMALL }, "model"],
  ])("%s", async (_, request, param) => {
    const { status, body } = await post("/v1/embeddings", { ...MODEL, ...request });
    expect({ status, body }).toMatchObject({ status: 400, body: { error: { param } } });
  });

  test("a chat call of an embedding model, with the name of the right API", async () => {
    const { status, message, param } = await failureOf(client.chat.completions.create({ ...MODEL, messages: [said("hello")] }));
    expect({ status, param }).toEqual({ status: 400, param: "model" });
    expect(message).toContain("/v1/embeddings");
  });

  test("many texts with an idempotency key", async () => {
    const input = Array.from({ length: 257 }, () => "a");
    const refused = await post("/v1/embeddings", { ...MODEL, input }, { "idempotency-key": "many" });
    expect(refused).toMatchObject({ status: 400, body: { error: { param: "input" } } });
    expect((await post("/v1/embeddings", { ...MODEL, input })).status).toBe(200);
  });
});
