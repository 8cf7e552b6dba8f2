/** Anthropic's own client for Node, with a Bearer token: only the address and the token are changed. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { betaZodTool } from "@anthropic-ai/sdk/helpers/beta/zod";
import { zodOutputFormat } from "@anthropic-ai/sdk/helpers/zod";
import { z } from "zod";
import { CALL_WEATHER, EVENT, errorOf, errorOfThird, keyOf, MODEL, REPLY, WEATHER } from "./sandbox.ts";

const clientOf = (key: Parameters<typeof keyOf>[0] = "VX_KEY") =>
  new Anthropic({ baseURL: process.env.VX_URL, authToken: keyOf(key), apiKey: null, maxRetries: 0 });
const client = clientOf();
const LIMIT = 400;
const said = (content: string) => ({ role: "user" as const, content });
const WEATHER_TOOL: Anthropic.Tool = {
  name: WEATHER.name,
  description: WEATHER.description,
  input_schema: z.toJSONSchema(WEATHER.schema) as Anthropic.Tool.InputSchema,
};

describe("messages", () => {
  test("a reply has text and usage", async () => {
    const reply = await client.messages.create({
      model: MODEL,
      max_tokens: LIMIT,
      system: [{ type: "text", text: "Be brief.", cache_control: { type: "ephemeral" } }],
      messages: [said("Hello")],
    });
    const [block] = reply.content;
    assert(block?.type === "text");
    assert.match(block.text, REPLY);
    assert.equal(reply.stop_reason, "end_turn");
    assert(reply.usage.input_tokens > 0 && reply.usage.output_tokens > 0);
  });

  test("cached tokens are not part of the input tokens", async () => {
    const words = "word ".repeat(200);
    const create = (text: string) => client.messages.create({ model: MODEL, max_tokens: LIMIT, messages: [said(text)] });
    const { usage } = await create(`[[cached=100]] ${words}`);
    assert.equal(usage.cache_read_input_tokens, 100);
    assert(usage.input_tokens > 50 && usage.input_tokens < 200);
  });

  test("a tool result goes back with the content of the first reply", async () => {
    const messages: Anthropic.MessageParam[] = [said(CALL_WEATHER.replace("]]", " reasoning=8]]"))];
    const body = { model: MODEL, max_tokens: LIMIT, tools: [WEATHER_TOOL] };
    const first = await client.messages.create({ ...body, messages });
    assert.equal(first.stop_reason, "tool_use");
    const call = first.content.find(({ type }) => type === "tool_use");
    assert(call?.type === "tool_use");
    WEATHER.schema.parse(call.input);
    messages.push({ role: "assistant", content: first.content });
    messages.push({ role: "user", content: [{ type: "tool_result", tool_use_id: call.id, content: "sunny" }] });
    const second = await client.messages.create({ ...body, messages });
    assert.equal(second.stop_reason, "end_turn");
  });

  test("toolRunner of the beta client calls the function and returns the text after its result", async () => {
    const cities: string[] = [];
    const run = ({ city }: { city: string }) => {
      cities.push(city);
      return "sunny";
    };
    const tool = betaZodTool({ name: WEATHER.name, description: WEATHER.description, inputSchema: WEATHER.schema, run });
    const final = await client.beta.messages.toolRunner({
      model: MODEL,
      max_tokens: LIMIT,
      messages: [said(CALL_WEATHER)],
      tools: [tool],
    });
    assert.equal(final.stop_reason, "end_turn");
    assert.equal(cities.length, 1);
  });

  test("parse returns an object that matches the schema", async () => {
    const reply = await client.messages.parse({
      model: MODEL,
      max_tokens: LIMIT,
      messages: [said("An event")],
      output_config: { format: zodOutputFormat(EVENT) },
    });
    EVENT.parse(reply.parsed_output);
  });

  test("the pieces of a stream are the text and the thinking of the final message", async () => {
    const stream = client.messages.stream({
      model: MODEL,
      max_tokens: 4_000,
      thinking: { type: "enabled", budget_tokens: 1_024 },
      messages: [said("[[reasoning=20]] Hello")],
    });
    let text = "";
    let thinking = "";
    stream.on("text", (delta) => {
      text += delta;
    });
    stream.on("thinking", (delta) => {
      thinking += delta;
    });
    const final = await stream.finalMessage();
    assert.match(text, REPLY);
    assert.equal(text, await stream.finalText());
    const [first] = final.content;
    assert(first?.type === "thinking");
    assert.equal(first.thinking, thinking);
    assert(first.signature.length > 0);
    assert(final.usage.output_tokens > 20);
  });

  test("a stream of tool arguments makes a valid call", async () => {
    const stream = client.messages.stream({
      model: MODEL,
      max_tokens: LIMIT,
      messages: [said("Weather?")],
      tools: [WEATHER_TOOL],
      tool_choice: { type: "tool", name: WEATHER.name },
    });
    let json = "";
    stream.on("inputJson", (delta) => {
      json += delta;
    });
    const final = await stream.finalMessage();
    const call = final.content.find(({ type }) => type === "tool_use");
    assert(call?.type === "tool_use");
    assert.deepEqual(JSON.parse(json), call.input);
    WEATHER.schema.parse(call.input);
  });

  test("countTokens counts the input of a call", async () => {
    const body = { model: MODEL, messages: [said("How many tokens is this?")], tools: [WEATHER_TOOL] };
    const { input_tokens } = await client.messages.countTokens(body);
    const { usage } = await client.messages.create({ ...body, max_tokens: 1 });
    assert.equal(input_tokens, usage.input_tokens);
  });
});

describe("errors", () => {
  const ask = (key: Parameters<typeof keyOf>[0]) => () =>
    clientOf(key).messages.create({ model: MODEL, max_tokens: 1, messages: [said("Hello")] });

  test("an unknown token is an AuthenticationError", async () => {
    const error = await errorOf(ask("VX_NO_KEY"));
    assert(error instanceof Anthropic.AuthenticationError);
    assert.equal(error.type, "authentication_error");
  });

  test("an empty balance is an APIError with the status 402", async () => {
    const error = await errorOf(ask("VX_BROKE_KEY"));
    assert(error instanceof Anthropic.APIError);
    assert.equal(error.status, 402);
  });

  test("too many requests are a RateLimitError", async () => {
    const error = await errorOfThird(ask("VX_LIMITED_KEY"));
    assert(error instanceof Anthropic.RateLimitError);
    assert(Number(error.headers.get("retry-after")) > 0);
  });

  test("an unknown model is a NotFoundError", async () => {
    const error = await errorOf(() => client.messages.create({ model: "nothing", max_tokens: 1, messages: [said("Hello")] }));
    assert(error instanceof Anthropic.NotFoundError);
  });
});
