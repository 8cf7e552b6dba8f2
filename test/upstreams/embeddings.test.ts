import { describe, expect, test } from "vitest";
import { base64OfVector } from "../../src/domain/base64.ts";
import { ReplyBuffer } from "../../src/upstreams/http/reply-buffer.ts";
import { openaiEmbeddingsDialect } from "../../src/upstreams/openai/embeddings.ts";
import { UpstreamFailure } from "../../src/upstreams/upstream-failure.ts";
import { promptOf } from "../support/samples.ts";

const ONE = [0.5, -0.25];
const TWO = [1, 0];

function promptFor(texts: readonly string[], dimensions?: number) {
  return promptOf({
    messages: texts.map((content) => ({ role: "user", content })),
    maxTokens: 0,
    options: { task: { kind: "embed", dimensions } },
  });
}

/** What the reader makes of a response to a request with two texts. */
function read(body: unknown, dimensions?: number) {
  const reply = new ReplyBuffer(0);
  const reader = openaiEmbeddingsDialect.createReader(reply, promptFor(["a", "b"], dimensions));
  reader.readWhole(typeof body === "string" ? body : JSON.stringify(body));
  return reply.nextEvent();
}

function base64(values: readonly number[]): string {
  return base64OfVector(Float32Array.from(values));
}

function item(index: unknown, embedding: unknown): object {
  return { object: "embedding", index, embedding };
}

test("the request has the texts, and asks for base64", () => {
  expect(openaiEmbeddingsDialect.path("/v1")).toBe("/v1/embeddings");
  const body = openaiEmbeddingsDialect.body(promptFor(["a", "b"], 2), "small");
  expect(JSON.parse(JSON.stringify(body))).toEqual({
    model: "small",
    input: ["a", "b"],
    encoding_format: "base64",
    dimensions: 2,
  });
});

describe("vectors are read", () => {
  const expected = { kind: "done", finishReason: "stop", vectors: [Float32Array.from(ONE), Float32Array.from(TWO)] };

  test.each<[string, readonly object[]]>([
    ["in base64", [item(0, base64(ONE)), item(1, base64(TWO))]],
    ["as numbers", [item(0, ONE), item(1, TWO)]],
    ["in both forms", [item(0, ONE), item(1, base64(TWO))]],
    ["in another order", [item(1, TWO), item(0, ONE)]],
    ["without indexes", [{ embedding: ONE }, { embedding: TWO }]],
  ])("%s", (_, data) => {
    expect(read({ data })).toMatchObject(expected);
    expect(read({ data }, 2)).toMatchObject(expected);
  });

  test("with the usage, if it is a count", () => {
    const data = [item(0, ONE), item(1, TWO)];
    expect(read({ data, usage: { prompt_tokens: 7, total_tokens: 7 } })).toMatchObject({ usage: { input: 7, output: 0 } });
    for (const prompt_tokens of [-1, 1.5, "7", null, 1e300]) {
      expect(read({ data, usage: { prompt_tokens } })).toMatchObject({ usage: undefined });
    }
  });
});

describe("a response is refused with", () => {
  test.each<[string, unknown]>([
    ["no JSON", "{"],
    ["an error", { error: { message: "no" } }],
    ["no list", { data: {} }],
    ["too few vectors", { data: [item(0, ONE)] }],
    ["too many vectors", { data: [item(0, ONE), item(1, TWO), item(2, TWO)] }],
    ["an index twice", { data: [item(0, ONE), item(0, TWO)] }],
    ["an index beyond the end", { data: [item(0, ONE), item(2, TWO)] }],
    ["an index that is no count", { data: [item(0, ONE), item("1", TWO)] }],
    ["an item that is no object", { data: [item(0, ONE), null] }],
    ["no vector", { data: [item(0, ONE), item(1, null)] }],
    ["an empty vector", { data: [item(0, []), item(1, [])] }],
    ["a text among the numbers", { data: [item(0, ONE), item(1, [1, "0"])] }],
    ["numbers beyond 32 bits", { data: [item(0, ONE), item(1, [1e300, 0])] }],
    ["vectors of different lengths", { data: [item(0, ONE), item(1, [1, 0, 0])] }],
    ["part of a value", { data: [item(0, ONE), item(1, Buffer.from("abcde").toString("base64"))] }],
    ["text that is no base64", { data: [item(0, ONE), item(1, "***")] }],
    ["values that are not finite", { data: [item(0, ONE), item(1, base64([Number.NaN, 0]))] }],
    ["a huge vector", { data: [item(0, Array(8_193).fill(0)), item(1, Array(8_193).fill(0))] }],
  ])("%s", (_, body) => {
    expect(() => read(body)).toThrow(UpstreamFailure);
  });

  test("other dimensions than requested", () => {
    expect(() => read({ data: [item(0, ONE), item(1, TWO)] }, 3)).toThrow("has a vector of 2 instead of 3 dimensions");
  });

  test("events", () => {
    const reader = openaiEmbeddingsDialect.createReader(new ReplyBuffer(0), promptFor(["a"]));
    expect(() => reader.readEvent("{}")).toThrow(UpstreamFailure);
  });
});
