/** Vercel's AI SDK. openai(model) uses the Responses API. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import {
  APICallError,
  embedMany,
  generateObject,
  generateText,
  isStepCount,
  type LanguageModel,
  Output,
  streamObject,
  streamText,
  tool,
} from "ai";
import {
  assertUnitVector,
  BASE_URL,
  CALL_WEATHER,
  EMBEDDING_MODEL,
  EVENT,
  errorOf,
  keyOf,
  MODEL,
  REPLY,
  WEATHER,
} from "./sandbox.ts";

const openai = createOpenAI({ baseURL: BASE_URL, apiKey: keyOf("VX_KEY") });
const compatible = createOpenAICompatible({
  name: "vx",
  baseURL: BASE_URL,
  apiKey: keyOf("VX_KEY"),
  includeUsage: true,
  supportsStructuredOutputs: true,
});
const anthropic = createAnthropic({ baseURL: BASE_URL, authToken: keyOf("VX_KEY") });
const MODELS: readonly [name: string, model: LanguageModel, readsReasoning: boolean][] = [
  ["openai()", openai(MODEL), true],
  ["openai.chat()", openai.chat(MODEL), false],
  ["createOpenAICompatible()", compatible(MODEL), true],
  ["anthropic()", anthropic(MODEL), true],
];

for (const [name, model, readsReasoning] of MODELS) {
  describe(name, () => {
    test("generateText calls the tool and returns the text after its result", async () => {
      const cities: string[] = [];
      const { text, steps, usage } = await generateText({
        model,
        prompt: CALL_WEATHER,
        stopWhen: isStepCount(5),
        tools: {
          weather: tool({
            description: WEATHER.description,
            inputSchema: WEATHER.schema,
            execute: async ({ city }) => {
              cities.push(city);
              return { temperature: 20 };
            },
          }),
        },
      });
      assert.match(text, REPLY);
      assert.equal(steps.length, 2);
      assert.equal(cities.length, 1);
      assert((usage.inputTokens ?? 0) > 0 && (usage.outputTokens ?? 0) > 0);
    });

    test("generateObject and Output.object return values that match the schema", async () => {
      EVENT.parse((await generateObject({ model, schema: EVENT, prompt: "An event" })).object);
      const { output } = await generateText({ model, output: Output.object({ schema: EVENT }), prompt: "An event" });
      EVENT.parse(output);
    });

    test("streamObject ends with a value that matches the schema", async () => {
      const { partialObjectStream, object } = streamObject({ model, schema: EVENT, prompt: "An event" });
      let parts = 0;
      for await (const _ of partialObjectStream) parts++;
      EVENT.parse(await object);
      assert(parts > 1);
    });

    test("streamText has the text of generateText, and usage", async () => {
      const whole = await generateText({ model, prompt: "Hello" });
      const stream = streamText({ model, prompt: "Hello" });
      let text = "";
      for await (const piece of stream.textStream) text += piece;
      assert.equal(text, whole.text);
      assert.match(text, REPLY);
      assert.equal(await stream.finishReason, "stop");
      assert.equal((await stream.usage).outputTokens, whole.usage.outputTokens);
    });

    if (readsReasoning) {
      test("reasoning comes with the text", async () => {
        const { reasoningText, text } = await generateText({ model, prompt: "[[reasoning=20]] Hello" });
        assert.match(text, REPLY);
        assert((reasoningText ?? "").length > 0);
      });
    }
  });
}

test("the API key of the variable is sent as x-api-key, which the base URL with /anthropic accepts", async () => {
  process.env.ANTHROPIC_API_KEY = keyOf("VX_KEY");
  process.env.ANTHROPIC_AUTH_TOKEN = "other";
  const ask = async (baseURL: string, options = {}) =>
    (await generateText({ model: createAnthropic({ baseURL, ...options })(MODEL), prompt: "Hello" })).text;
  assert.match(await ask(`${process.env.VX_URL}/anthropic/v1`), REPLY);
  const error = await errorOf(() => ask(BASE_URL));
  assert(APICallError.isInstance(error));
  assert.equal(error.statusCode, 401);
  process.env.ANTHROPIC_API_KEY = "other";
  assert.match(await ask(BASE_URL, { authToken: keyOf("VX_KEY") }), REPLY);
});

test("embedMany returns one unit vector for each value", async () => {
  const { embeddings, usage } = await embedMany({ model: openai.embedding(EMBEDDING_MODEL), values: ["one", "two", "three"] });
  assert.equal(embeddings.length, 3);
  for (const embedding of embeddings) assertUnitVector(embedding, embeddings[0]?.length ?? 0);
  assert(usage.tokens > 0);
});

test("an empty balance is an APICallError with the status 402, which is not retried", async () => {
  const broke = createOpenAI({ baseURL: BASE_URL, apiKey: keyOf("VX_BROKE_KEY") });
  const error = await errorOf(() => generateText({ model: broke(MODEL), prompt: "Hello" }));
  assert(APICallError.isInstance(error));
  assert.equal(error.statusCode, 402);
});
