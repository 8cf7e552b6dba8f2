// Each field of the requests of OpenAI's SDK is supported, ignored as docs/openai.md says, or refused by its name.
import type { ResponseFormatJSONSchema } from "openai/resources";
import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPart,
  ChatCompletionContentPartImage,
  ChatCompletionContentPartText,
  ChatCompletionCreateParamsNonStreaming,
  ChatCompletionDeveloperMessageParam,
  ChatCompletionFunctionTool,
  ChatCompletionMessageParam,
  ChatCompletionMessageToolCall,
  ChatCompletionStreamOptions,
  ChatCompletionSystemMessageParam,
  ChatCompletionTool,
  ChatCompletionToolMessageParam,
  ChatCompletionUserMessageParam,
} from "openai/resources/chat/completions/completions";
import type { CompletionCreateParamsNonStreaming } from "openai/resources/completions";
import type { EmbeddingCreateParams } from "openai/resources/embeddings";
import { expect, test } from "vitest";
import { useTestApp } from "../../support/app.ts";
import { PNG } from "../../support/images.ts";
import { SMALL, said, usePaidKey } from "../../support/openai.ts";
import {
  accepted,
  expectHandled,
  type FieldCases,
  type Kinds,
  refused,
  refusedKinds,
  rowsOf,
} from "../field-cases.ts";

const app = useTestApp();
const key = usePaidKey(app, { plan: "scale" });

const chat = { model: SMALL, max_tokens: 5, messages: [said("Hello")] };
const tool: ChatCompletionFunctionTool = { type: "function", function: { name: "f" } };
const call = { id: "a", type: "function", function: { name: "f", arguments: "{}" } } as const;
const image = { url: `data:image/png;base64,${PNG.toString("base64")}` };

const chatFields: FieldCases<ChatCompletionCreateParamsNonStreaming> = {
  messages: accepted([said("Hello")]),
  model: accepted(SMALL),
  audio: refused({ format: "mp3", voice: "alloy" }),
  frequency_penalty: accepted(1),
  function_call: refused({ name: "f" }),
  functions: refused([{ name: "f" }]),
  logit_bias: refused({ "1": 5 }),
  logprobs: refused(true),
  max_completion_tokens: accepted(5),
  max_tokens: accepted(5),
  metadata: accepted({ a: "b" }),
  modalities: refused(["text", "audio"]),
  moderation: refused({ model: "m" }),
  n: refused(2),
  parallel_tool_calls: accepted(false),
  prediction: accepted({ type: "content", content: "Hi" }),
  presence_penalty: accepted(1),
  prompt_cache_key: accepted("a"),
  prompt_cache_options: accepted({ mode: "explicit" }),
  prompt_cache_retention: accepted("24h"),
  reasoning_effort: accepted("xhigh"),
  response_format: accepted({ type: "json_object" }),
  safety_identifier: accepted("a"),
  seed: accepted(1),
  service_tier: refused("flex"),
  stop: accepted(["a"]),
  store: refused(true),
  stream: accepted(false),
  stream_options: accepted({ include_usage: true }),
  temperature: accepted(1),
  tool_choice: accepted("none"),
  tools: accepted([tool]),
  top_logprobs: refused(2),
  top_p: accepted(1),
  user: accepted("a"),
  verbosity: refused("high"),
  web_search_options: refused({}),
};

const streamOptions: FieldCases<ChatCompletionStreamOptions> = {
  include_obfuscation: accepted(true),
  include_usage: accepted(true),
};

const schemaFields: FieldCases<ResponseFormatJSONSchema.JSONSchema> = {
  name: accepted("a"),
  description: accepted("a"),
  schema: accepted({ type: "object" }),
  strict: accepted(true),
};

const functionFields: FieldCases<ChatCompletionFunctionTool["function"]> = {
  name: accepted("f"),
  description: accepted("a"),
  parameters: accepted({ type: "object" }),
  strict: accepted(true),
};

const tools: Kinds<ChatCompletionTool["type"]> = { function: true, custom: false };
const calls: Kinds<ChatCompletionMessageToolCall["type"]> = { function: true, custom: false };
const parts: Kinds<ChatCompletionContentPart["type"]> = {
  text: true,
  image_url: true,
  input_audio: false,
  file: false,
};
const roles: Readonly<Record<ChatCompletionMessageParam["role"], boolean>> = {
  developer: true,
  system: true,
  user: true,
  assistant: true,
  tool: true,
  function: false,
};

const systemMessage: FieldCases<ChatCompletionSystemMessageParam> = {
  role: accepted("system"),
  content: accepted("Hello"),
  name: accepted("a"),
};
const developerMessage: FieldCases<ChatCompletionDeveloperMessageParam> = {
  ...systemMessage,
  role: accepted("developer"),
};
const userMessage: FieldCases<ChatCompletionUserMessageParam> = {
  role: accepted("user"),
  content: accepted([
    { type: "text", text: "Hello" },
    { type: "image_url", image_url: image },
  ]),
  name: accepted("a"),
};
const assistantMessage: FieldCases<ChatCompletionAssistantMessageParam> = {
  role: accepted("assistant"),
  content: accepted("Hello"),
  name: accepted("a"),
  refusal: accepted("No."),
  tool_calls: accepted([call]),
  audio: refused({ id: "a" }),
  function_call: refused({ name: "f", arguments: "{}" }),
};
const toolMessage: FieldCases<ChatCompletionToolMessageParam> = {
  role: accepted("tool"),
  content: accepted("Hello"),
  tool_call_id: accepted("a"),
};

const textPart: FieldCases<ChatCompletionContentPartText> = {
  type: accepted("text"),
  text: accepted("Hello"),
  prompt_cache_breakpoint: accepted({ mode: "explicit" }),
};
const imagePart: FieldCases<ChatCompletionContentPartImage> = {
  type: accepted("image_url"),
  image_url: accepted(image),
  prompt_cache_breakpoint: accepted({ mode: "explicit" }),
};
const imageUrl: FieldCases<ChatCompletionContentPartImage.ImageURL> = {
  url: accepted(image.url),
  detail: refused("original"),
};

const inMessages = (...messages: readonly object[]) => ({ ...chat, messages });
const inPart = (part: object) => inMessages({ role: "user", content: [part] });
const inTools = (one: object) => ({ ...chat, tools: [one] });

test.each([
  ...rowsOf("", chatFields, chat),
  ...rowsOf("stream_options.", streamOptions, {}, (stream_options) => ({
    ...chat,
    stream: true,
    stream_options,
  })),
  ...rowsOf("response_format.json_schema.", schemaFields, { name: "a", schema: {} }, (json_schema) => ({
    ...chat,
    response_format: { type: "json_schema", json_schema },
  })),
  ...rowsOf("tools[0].function.", functionFields, tool.function, (one) =>
    inTools({ ...tool, function: one }),
  ),
  ...refusedKinds(tools, "tools[0].type", (one) => ({ ...inTools(one), tool_choice: "required" })),
  ...refusedKinds(calls, "messages[0].tool_calls[0].type", (one) =>
    inMessages({ role: "assistant", tool_calls: [one] }),
  ),
  ...refusedKinds(parts, "messages[0].content[0].type", inPart),
  ...rowsOf("messages[0].", systemMessage, { role: "system", content: "a" }, inMessages),
  ...rowsOf("messages[0].", developerMessage, { role: "developer", content: "a" }, inMessages),
  ...rowsOf("messages[0].", userMessage, said("a"), inMessages),
  ...rowsOf("messages[0].", assistantMessage, { role: "assistant", content: "a" }, inMessages),
  ...rowsOf("messages[1].", toolMessage, { role: "tool", content: "a", tool_call_id: "a" }, (message) =>
    inMessages({ role: "assistant", tool_calls: [call] }, message),
  ),
  ...rowsOf("messages[0].content[0].", textPart, { type: "text", text: "a" }, inPart),
  ...rowsOf("messages[0].content[0].", imagePart, { type: "image_url", image_url: image }, inPart),
  ...rowsOf("messages[0].content[0].image_url.", imageUrl, image, (image_url) =>
    inPart({ type: "image_url", image_url }),
  ),
])("the field %s of a chat completion", async (...row) => {
  await expectHandled(app, key.secret, "/v1/chat/completions", row);
});

test.each(Object.entries(roles))("a chat completion with a message of the role %s", async (role, isKnown) => {
  if (isKnown) return;
  const row = [role, inMessages({ role, name: "f", content: "a" }), "messages[0].role"] as const;
  await expectHandled(app, key.secret, "/v1/chat/completions", row);
});

const completionFields: FieldCases<CompletionCreateParamsNonStreaming> = {
  model: accepted(SMALL),
  prompt: refused(["a", "b"]),
  best_of: refused(2),
  echo: refused(true),
  frequency_penalty: accepted(1),
  logit_bias: refused({ "1": 5 }),
  logprobs: refused(1),
  max_tokens: accepted(5),
  n: refused(2),
  presence_penalty: accepted(1),
  seed: accepted(1),
  stop: accepted("a"),
  stream: accepted(false),
  stream_options: accepted({ include_usage: true }),
  suffix: accepted("a"),
  temperature: accepted(1),
  top_p: accepted(1),
  user: accepted("a"),
};

test.each(rowsOf("", completionFields, { model: SMALL, prompt: "Hello", max_tokens: 5 }))(
  "the field %s of a text completion",
  async (...row) => expectHandled(app, key.secret, "/v1/completions", row),
);

const embeddingFields: FieldCases<EmbeddingCreateParams> = {
  input: accepted(["a", "b"]),
  model: accepted("vx-sandbox-embed"),
  dimensions: accepted(8),
  encoding_format: accepted("base64"),
  user: accepted("a"),
};

test.each(rowsOf("", embeddingFields, { model: "vx-sandbox-embed", input: "a" }))(
  "the field %s of embeddings",
  async (...row) => expectHandled(app, key.secret, "/v1/embeddings", row),
);

test("a field that is missing in a table is an error of the compiler", () => {
  // @ts-expect-error: the other fields are missing.
  const cases: FieldCases<EmbeddingCreateParams> = { model: accepted("a") };
  expect(cases).toBeDefined();
});
