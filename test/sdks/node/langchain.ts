/** LangChain for Node. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { HumanMessage, type ToolMessage } from "@langchain/core/messages";
import { tool } from "@langchain/core/tools";
import { ChatOpenAI, OpenAIEmbeddings } from "@langchain/openai";
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

const configuration = { baseURL: BASE_URL };
const weather = tool(({ city }) => `It is sunny in ${city}.`, WEATHER);

for (const useResponsesApi of [false, true]) {
  const model = new ChatOpenAI({ model: MODEL, apiKey: keyOf("VX_KEY"), configuration, useResponsesApi, maxRetries: 0 });

  describe(useResponsesApi ? "ChatOpenAI over the Responses API" : "ChatOpenAI", () => {
    test("a bound tool is called, and its result goes back", async () => {
      const bound = model.bindTools([weather]);
      const question = new HumanMessage(CALL_WEATHER);
      const reply = await bound.invoke([question]);
      const [call] = reply.tool_calls ?? [];
      assert(call?.id);
      assert.equal(call.name, WEATHER.name);
      const result: ToolMessage = await weather.invoke({ ...call, type: "tool_call" });
      assert.match(result.text, /^It is sunny in /);
      assert.match((await bound.invoke([question, reply, result])).text, REPLY);
    });

    for (const method of ["jsonSchema", "functionCalling"] as const) {
      test(`structured output by ${method} matches the schema`, async () => {
        EVENT.parse(await model.withStructuredOutput(EVENT, { method, name: "event" }).invoke("An event"));
      });
    }

    test("the pieces of a stream are the whole text, with usage at its end", async () => {
      const whole = await model.invoke("Hello");
      let text = "";
      let tokens = 0;
      for await (const chunk of await model.stream("Hello")) {
        text += chunk.text;
        tokens += chunk.usage_metadata?.output_tokens ?? 0;
      }
      assert.match(text, REPLY);
      assert.equal(text, whole.text);
      assert.equal(tokens, whole.usage_metadata?.output_tokens);
    });
  });
}

test("embeddings of documents and of a query are unit vectors", async () => {
  const embeddings = new OpenAIEmbeddings({ model: EMBEDDING_MODEL, apiKey: keyOf("VX_KEY"), configuration });
  const [one, two] = await embeddings.embedDocuments(["one", "two"]);
  const query = await embeddings.embedQuery("one");
  assertUnitVector(one, query.length);
  assertUnitVector(two, query.length);
  assert.deepEqual(query, one);
});

test("an empty balance is an error with the status 402", async () => {
  const broke = new ChatOpenAI({ model: MODEL, apiKey: keyOf("VX_BROKE_KEY"), configuration, maxRetries: 0 });
  const error = await errorOf(() => broke.invoke("Hello"));
  assert(error instanceof Error && "status" in error);
  assert.equal(error.status, 402);
});
