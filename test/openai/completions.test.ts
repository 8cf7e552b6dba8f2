import { encode } from "gpt-tokenizer/encoding/cl100k_base";
import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { useOperator } from "../support/fixtures.ts";
import { chargesOf, failureOf, openAi, SMALL, usePaidKey } from "../support/openai.ts";
import { started } from "../support/started.ts";

const app = useTestApp();
const operator = useOperator(app);
const key = usePaidKey(app);
const client = started(() => openAi(app, key));

type Body = Omit<OpenAI.CompletionCreateParamsNonStreaming, "model">;

const complete = (body: Body) => client.completions.create({ model: SMALL, ...body });

describe("a completion", () => {
  test("has all fields of the SDK's type, and its cost", async () => {
    const { id, object, choices, usage } = await complete({ prompt: "[[tokens=7]] Once", suffix: " end." });
    expect({ id, object }).toEqual({ id: expect.stringMatching(/^gen_/), object: "text_completion" });
    expect(choices).toEqual([{ text: "This is a reply of the sandbox", index: 0, logprobs: null, finish_reason: "stop" }]);
    expect(usage?.completion_tokens).toBe(7);
    // No tokens of a message template: the prompt and the suffix alone.
    expect(usage?.prompt_tokens).toBe(encode("[[tokens=7]] Once").length + encode(" end.").length);
    const [charge] = await chargesOf(operator, key);
    expect(charge).toMatchObject({ inputTokens: BigInt(usage?.prompt_tokens ?? 0), outputTokens: 7n });
  });

  test("is the same for a list of one text and for tokens", async () => {
    const textOf = async (prompt: Body["prompt"]) => (await complete({ prompt })).choices[0]?.text;
    const text = await textOf("Once upon a time");
    const tokens = encode("Once upon a time");
    for (const prompt of [["Once upon a time"], tokens, [tokens]]) expect(await textOf(prompt)).toBe(text);
  });

  test("ends at max_tokens and before a stop text", async () => {
    expect((await complete({ prompt: "a", max_tokens: 2 })).choices).toMatchObject([
      { text: "This is", finish_reason: "length" },
    ]);
    expect((await complete({ prompt: "a", stop: " sandbox" })).choices).toMatchObject([
      { text: "This is a reply of the", finish_reason: "stop" },
    ]);
  });

  test("can have an empty prompt before a suffix", async () => {
    expect((await complete({ prompt: "", suffix: "return 1" })).choices[0]?.text).toMatch(/^This is/);
  });
});

test("a stream has the same text, then the finish reason, then the usage", async () => {
  const body = { model: SMALL, prompt: "Once upon a time" };
  const whole = await client.completions.create(body);
  const stream = await client.completions.create({ ...body, stream: true, stream_options: { include_usage: true } });
  const chunks: OpenAI.Completion[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  expect(chunks.every(({ object }) => object === "text_completion")).toBe(true);
  expect(chunks.flatMap(({ choices }) => choices.map(({ text }) => text)).join("")).toBe(whole.choices[0]?.text);
  expect(chunks.at(-2)?.choices).toEqual([{ text: "", index: 0, logprobs: null, finish_reason: "stop" }]);
  expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: whole.usage?.completion_tokens } });
});

describe("a call is refused:", () => {
  test.each<[string, object, string]>([
    ["no prompt", { prompt: [] }, "prompt"],
    ["unknown tokens", { prompt: [100_261] }, "prompt"],
    ["an object", { prompt: { text: "a" } }, "prompt"],
    ["a long prompt", { prompt: "a".repeat(400_001) }, "prompt"],
    ["a prompt beyond the context window", { prompt: "word ".repeat(8_200) }, "prompt"],
    ["a long suffix", { suffix: "a".repeat(400_001) }, "suffix"],
    ["an embedding model", { model: "vx-sandbox-embed" }, "model"],
  ])("%s", async (_, body, param) => {
    const failure = await failureOf(complete({ prompt: "a", ...body }));
    expect(failure).toMatchObject({ status: 400, param });
  });

  test("harmless values of refused fields are accepted", async () => {
    const harmless = { n: 1, best_of: 1, echo: false, logprobs: null, logit_bias: {} };
    expect((await complete({ prompt: "a", ...harmless })).choices).toHaveLength(1);
  });
});
