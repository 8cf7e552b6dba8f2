// Calls in the formats of OpenAI reach upstreams of every format, which refuse bodies that their published format does not allow.
import type OpenAI from "openai";
import { describe, expect, test } from "vitest";
import type { RemoteKind } from "../../src/domain/model.ts";
import { post } from "../support/any-json.ts";
import { KINDS, useDialects } from "../support/dialects.ts";
import { requestProblems } from "../support/fake-upstreams/request-schemas.ts";
import { PNG } from "../support/images.ts";
import { openAi } from "../support/openai.ts";

const TEXT = "Hello, world.";
const dialects = useDialects();
const client = () => openAi(dialects.app, dialects.key);

const PNG_URL = `data:image/png;base64,${PNG.toString("base64")}`;
const SCHEMA = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const EXTRA = { prompt_cache_retention: "24h", other_field: 1 } as const;

const MESSAGES: OpenAI.Chat.ChatCompletionMessageParam[] = [
  { role: "developer", content: "Be brief." },
  {
    role: "user",
    content: [
      { type: "text", text: "Where is this?" },
      { type: "image_url", image_url: { url: PNG_URL, detail: "low" } },
    ],
  },
  {
    role: "assistant",
    content: null,
    tool_calls: [
      { id: "call_1", type: "function", function: { name: "weather", arguments: '{"city":"Paris"}' } },
      { id: "call_2", type: "function", function: { name: "weather", arguments: '{"city":"Rome"}' } },
    ],
  },
  { role: "tool", tool_call_id: "call_1", content: "sunny" },
  { role: "tool", tool_call_id: "call_2", content: [{ type: "text", text: "rainy" }] },
];

const CHAT = {
  messages: MESSAGES,
  tools: [{ type: "function" as const, function: { name: "weather", description: "d", parameters: SCHEMA } }],
  tool_choice: "auto" as const,
  parallel_tool_calls: false,
  max_tokens: 2_000,
  top_p: 0.5,
};

const INPUT: OpenAI.Responses.ResponseInput = [
  {
    role: "user",
    content: [
      { type: "input_text", text: "Where is this?" },
      { type: "input_image", image_url: PNG_URL, detail: "low" },
    ],
  },
  { type: "function_call", call_id: "call_1", name: "weather", arguments: '{"city":"Paris"}' },
  { type: "function_call", call_id: "call_2", name: "weather", arguments: '{"city":"Rome"}' },
  { type: "function_call_output", call_id: "call_1", output: "sunny" },
  { type: "function_call_output", call_id: "call_2", output: [{ type: "input_text", text: "rainy" }] },
];

const RESPONSE = {
  instructions: "Be brief.",
  input: INPUT,
  tools: [{ type: "function" as const, name: "weather", description: "d", parameters: SCHEMA, strict: false }],
  tool_choice: "auto" as const,
  parallel_tool_calls: false,
  max_output_tokens: 2_000,
  top_p: 0.5,
};

const bodyAt = (kind: RemoteKind) => dialects.upstreams[kind].calls.at(-1)?.body ?? {};

describe.each(KINDS)("a strict %s upstream", (kind) => {
  test("accepts tools, results and images of a chat completion", async () => {
    const { choices } = await client().chat.completions.create({ model: kind, ...CHAT });
    expect(choices[0]?.message.content).toBe(TEXT);
  });

  test("accepts tools, results and images of a response", async () => {
    const response = await client().responses.create({ model: kind, ...RESPONSE });
    expect(response.output_text).toBe(TEXT);
  });
});

test.each(["high", "xhigh", "max"] as const)("the effort %s reaches an upstream as high", async (effort) => {
  await client().chat.completions.create({ model: "openai", ...CHAT, reasoning_effort: effort as "high" });
  expect(bodyAt("openai").reasoning_effort).toBe("high");
  await client().responses.create({ model: "openai-responses", ...RESPONSE, reasoning: { effort: effort as "high" } });
  expect(bodyAt("openai-responses").reasoning).toMatchObject({ effort: "high" });
});

test("a chat completion reaches an upstream of the same format with its fields and the extra ones allowed", async () => {
  await client().chat.completions.create({ model: "openai", ...CHAT, ...EXTRA });
  const body = bodyAt("openai");
  expect(body).toMatchObject({
    tools: CHAT.tools,
    tool_choice: "auto",
    parallel_tool_calls: false,
    top_p: 0.5,
    prompt_cache_retention: "24h",
  });
  expect(body).not.toHaveProperty("other_field");
  const [, user, assistant, first, second] = body.messages as object[];
  expect(user).toMatchObject(MESSAGES[1] as object);
  expect(assistant).toMatchObject({
    role: "assistant",
    tool_calls: (MESSAGES[2] as typeof assistant & { tool_calls: unknown }).tool_calls,
  });
  expect([first, second]).toMatchObject([
    { role: "tool", tool_call_id: "call_1", content: "sunny" },
    { role: "tool", tool_call_id: "call_2", content: "rainy" },
  ]);
});

test("a response reaches an upstream of the same format with its items and the extra fields allowed", async () => {
  await client().responses.create({ model: "openai-responses", ...RESPONSE, ...EXTRA });
  const body = bodyAt("openai-responses");
  expect(body).toMatchObject({ tools: RESPONSE.tools, parallel_tool_calls: false, prompt_cache_retention: "24h" });
  expect(body).not.toHaveProperty("other_field");
  const calls = (body.input as { type?: string; call_id?: string }[]).filter(({ call_id }) => call_id);
  expect(calls.map(({ type, call_id }) => `${type} ${call_id}`)).toEqual([
    "function_call call_1",
    "function_call call_2",
    "function_call_output call_1",
    "function_call_output call_2",
  ]);
});

test("the validator of bodies rejects unknown members and null", () => {
  const body = { model: "m", max_tokens: 1, messages: [{ role: "user", content: "Hello" }] };
  const other = { messages: [{ $typeName: "vx.v1.Message", role: "user", content: "Hello" }] };
  for (const kind of ["openai", "anthropic"] as const) {
    expect(requestProblems(kind, body)).toEqual([]);
    for (const wrong of [{ temperature: null }, { extra: 1 }, other])
      expect(requestProblems(kind, { ...body, ...wrong })).not.toEqual([]);
  }
});

test("a prompt that the upstream does not support is refused before a request is sent", async () => {
  const { calls } = dialects.upstreams["openai-responses"];
  const before = calls.length;
  const body = { model: "openai-responses", messages: [{ role: "user", content: "Hello" }], stop: ["END"] };
  const message = "stop: is not supported by the upstream of this model";
  const refused = { status: 400, json: { error: { code: "invalid_argument", message } } };
  expect(await post(dialects.app, dialects.key, "/v1/generate", body)).toMatchObject(refused);
  expect(calls).toHaveLength(before);
});
