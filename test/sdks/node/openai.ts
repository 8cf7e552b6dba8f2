/** OpenAI's own client for Node: only the address and the key are changed. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import OpenAI from "openai";
import { zodFunction, zodResponseFormat, zodResponsesFunction, zodTextFormat } from "openai/helpers/zod";
import {
  assertUnitVector,
  BASE_URL,
  CALL_WEATHER,
  EMBEDDING_MODEL,
  EVENT,
  errorOf,
  errorOfThird,
  keyOf,
  MODEL,
  REPLY,
  WEATHER,
} from "./sandbox.ts";

const clientOf = (key: Parameters<typeof keyOf>[0] = "VX_KEY") =>
  new OpenAI({ baseURL: BASE_URL, apiKey: keyOf(key), maxRetries: 0 });
const client = clientOf();
const said = (content: string) => ({ role: "user" as const, content });

describe("chat completions", () => {
  test("a reply has text and usage that adds up", async () => {
    const reply = await client.chat.completions.create({ model: MODEL, messages: [said("Hello")] });
    assert.match(reply.choices[0]?.message.content ?? "", REPLY);
    assert(reply.usage);
    assert.equal(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens);
  });

  test("runTools calls the function and returns the text after its result", async () => {
    const cities: string[] = [];
    const runner = client.chat.completions.runTools({
      model: MODEL,
      messages: [said(CALL_WEATHER)],
      tools: [
        zodFunction({
          name: WEATHER.name,
          parameters: WEATHER.schema,
          function: ({ city }) => {
            cities.push(city);
            return "sunny";
          },
        }),
      ],
    });
    assert.match((await runner.finalContent()) ?? "", REPLY);
    assert.equal(cities.length, 1);
    assert.deepEqual(
      runner.messages.map(({ role }) => role),
      ["user", "assistant", "tool", "assistant"],
    );
  });

  test("parse returns an object that matches the schema", async () => {
    const reply = await client.chat.completions.parse({
      model: MODEL,
      messages: [said("An event")],
      response_format: zodResponseFormat(EVENT, "event"),
    });
    EVENT.parse(reply.choices[0]?.message.parsed);
  });

  test("a stream of tool arguments makes a valid call, with usage at its end", async () => {
    const stream = client.chat.completions.stream({
      model: MODEL,
      messages: [said(CALL_WEATHER)],
      tools: [zodFunction({ name: WEATHER.name, parameters: WEATHER.schema })],
      stream_options: { include_usage: true },
    });
    const deltas: string[] = [];
    stream.on("tool_calls.function.arguments.delta", (event) => deltas.push(event.arguments_delta));
    const final = await stream.finalChatCompletion();
    const call = final.choices[0]?.message.tool_calls?.[0];
    assert.equal(final.choices[0]?.finish_reason, "tool_calls");
    assert(call?.type === "function");
    assert.equal(deltas.join(""), call.function.arguments);
    WEATHER.schema.parse(JSON.parse(call.function.arguments));
    assert(final.usage && final.usage.completion_tokens > 0);
  });

  test("reasoning tokens are part of the completion tokens", async () => {
    const messages = [said("[[reasoning=20]] Hello")];
    const { usage } = await client.chat.completions.create({ model: MODEL, messages });
    assert.equal(usage?.completion_tokens_details?.reasoning_tokens, 20);
    assert(usage.completion_tokens > 20);
  });
});

describe("responses", () => {
  test("a reply has text and usage that adds up", async () => {
    const reply = await client.responses.create({ model: MODEL, instructions: "Be brief.", input: "Hello" });
    assert.match(reply.output_text, REPLY);
    assert.equal(reply.status, "completed");
    assert(reply.usage);
    assert.equal(reply.usage.total_tokens, reply.usage.input_tokens + reply.usage.output_tokens);
  });

  test("the result of a function call goes back with the output of the first reply", async () => {
    const tools = [zodResponsesFunction({ name: WEATHER.name, parameters: WEATHER.schema })];
    const input: OpenAI.Responses.ResponseInput = [said(`${CALL_WEATHER.replace("]]", " reasoning=8]]")}`)];
    const first = await client.responses.parse({ model: MODEL, input, tools, include: ["reasoning.encrypted_content"] });
    const call = first.output.find(({ type }) => type === "function_call");
    assert(call?.type === "function_call");
    WEATHER.schema.parse(call.parsed_arguments);
    assert(first.output.some(({ type }) => type === "reasoning"));
    input.push(...(first.output as OpenAI.Responses.ResponseInput));
    input.push({ type: "function_call_output", call_id: call.call_id, output: "sunny" });
    const second = await client.responses.create({ model: MODEL, input, tools });
    assert.match(second.output_text, REPLY);
  });

  test("parse returns an object that matches the schema", async () => {
    const reply = await client.responses.parse({
      model: MODEL,
      input: "An event",
      text: { format: zodTextFormat(EVENT, "event") },
    });
    EVENT.parse(reply.output_parsed);
  });

  test("the pieces of a stream are the text of the final response", async () => {
    const stream = client.responses.stream({ model: MODEL, input: "Hello" });
    let text = "";
    let last = -1;
    for await (const event of stream) {
      assert.equal(event.sequence_number, ++last);
      if (event.type === "response.output_text.delta") text += event.delta;
    }
    const final = await stream.finalResponse();
    assert.match(text, REPLY);
    assert.equal(text, final.output_text);
    assert(final.usage && final.usage.output_tokens > 0);
  });
});

describe("embeddings", () => {
  test("vectors arrive in order, as base64 and as numbers", async () => {
    const input = ["one", "two"];
    const base64 = await client.embeddings.create({ model: EMBEDDING_MODEL, input });
    const float = await client.embeddings.create({ model: EMBEDDING_MODEL, input, encoding_format: "float" });
    const length = float.data[0]?.embedding.length ?? 0;
    for (const [i, { embedding, index }] of base64.data.entries()) {
      assert.equal(index, i);
      assertUnitVector(embedding, length);
      const difference = embedding.map((value, j) => value - (float.data[i]?.embedding[j] ?? 0));
      assert(Math.hypot(...difference) < 1e-3);
    }
    assert(base64.usage.prompt_tokens > 0);
  });

  test("a shorter vector has the requested length", async () => {
    const { data } = await client.embeddings.create({ model: EMBEDDING_MODEL, input: "one", dimensions: 64 });
    assertUnitVector(data[0]?.embedding, 64);
  });
});

describe("errors", () => {
  const ask = (key: Parameters<typeof keyOf>[0]) => () => clientOf(key).responses.create({ model: MODEL, input: "Hello" });

  test("an unknown key is an AuthenticationError", async () => {
    const error = await errorOf(ask("VX_NO_KEY"));
    assert(error instanceof OpenAI.AuthenticationError);
    assert.equal(error.code, "invalid_api_key");
  });

  test("an empty balance is an APIError with the status 402", async () => {
    const error = await errorOf(ask("VX_BROKE_KEY"));
    assert(error instanceof OpenAI.APIError);
    assert.equal(error.status, 402);
    assert.equal(error.code, "insufficient_balance");
  });

  test("too many requests are a RateLimitError", async () => {
    const error = await errorOfThird(ask("VX_LIMITED_KEY"));
    assert(error instanceof OpenAI.RateLimitError);
    assert(Number(error.headers.get("retry-after")) > 0);
  });

  test("a hosted tool is left out and named, and refused if it must be called", async () => {
    const body = { model: MODEL, input: "Hello", tools: [{ type: "web_search" as const }] };
    const { response } = await client.responses.create(body).withResponse();
    assert.equal(response.headers.get("x-vx-ignored"), "tools[0]");
    const error = await errorOf(() => client.responses.create({ ...body, tool_choice: "required" }));
    assert(error instanceof OpenAI.BadRequestError);
    assert.match(error.message, /web_search/);
  });
});
