// Each field of the requests of OpenAI's SDK is supported, ignored as docs/openai.md says, or refused by its name.
import type { ResponseFormatJSONSchema } from "openai/resources";
import type * as sdk from "openai/resources/chat/completions/completions";
import type { CompletionCreateParamsNonStreaming } from "openai/resources/completions";
import type { EmbeddingCreateParams } from "openai/resources/embeddings";
import { expect, test } from "vitest";
import {
  expectHandled,
  type FieldCases,
  ignored,
  kindsOf,
  refused,
  refusedKinds,
  rowsOf,
  shown,
  used,
} from "../clients/field-cases.ts";
import { useTestApp } from "../support/app.ts";
import { PNG } from "../support/images.ts";
import { ABLE_MODEL, useMetered } from "../support/metered.ts";
import { SMALL, said, usePaidKey } from "../support/openai.ts";
import { started } from "../support/started.ts";

const metered = useMetered();
const key = started(() => metered.payer(100_000_000n));

const chat = { model: ABLE_MODEL, max_tokens: 5, messages: [said("Hello")] };
const tool: sdk.ChatCompletionFunctionTool = { type: "function", function: { name: "f" } };
const call = { id: "a", type: "function", function: { name: "f", arguments: "{}" } } as const;
const image = { url: `data:image/png;base64,${PNG.toString("base64")}` };

const chatFields: FieldCases<sdk.ChatCompletionCreateParamsNonStreaming> = {
  messages: used([said("Hello")]),
  model: used(ABLE_MODEL),
  audio: refused({ format: "mp3", voice: "alloy" }),
  frequency_penalty: used(1),
  function_call: refused({ name: "f" }),
  functions: refused([{ name: "f" }]),
  logit_bias: refused({ "1": 5 }),
  logprobs: refused(true),
  max_completion_tokens: ignored(5),
  max_tokens: used(5),
  metadata: ignored({ a: "b" }),
  modalities: refused(["text", "audio"]),
  moderation: refused({ model: "m" }),
  n: refused(2),
  parallel_tool_calls: ignored(false),
  prediction: ignored({ type: "content", content: "Hi" }),
  presence_penalty: used(1),
  prompt_cache_key: ignored("a"),
  prompt_cache_options: ignored({ mode: "explicit" }),
  prompt_cache_retention: ignored("24h"),
  reasoning_effort: used("xhigh"),
  response_format: used({ type: "json_object" }),
  safety_identifier: used("a"),
  seed: used(1),
  service_tier: refused("flex"),
  stop: used(["a"]),
  store: refused(true),
  stream: ignored(false),
  stream_options: ignored({ include_usage: true }),
  temperature: used(1),
  tool_choice: ignored("none"),
  tools: used([tool]),
  top_logprobs: refused(2),
  top_p: used(1),
  user: used("a"),
  verbosity: refused("high"),
  web_search_options: refused({}),
};

const streamOptions: FieldCases<sdk.ChatCompletionStreamOptions> = {
  include_obfuscation: ignored(true),
  include_usage: shown(true),
};

const schemaFields: FieldCases<ResponseFormatJSONSchema.JSONSchema> = {
  name: used("a"),
  description: used("a"),
  schema: used({ type: "object" }),
  strict: used(true),
};

const functionFields: FieldCases<sdk.ChatCompletionFunctionTool["function"]> = {
  name: used("f"),
  description: used("a"),
  parameters: used({ type: "object" }),
  strict: used(true),
};

const tools = kindsOf<sdk.ChatCompletionTool["type"]>()("function", "custom");
const calls = kindsOf<sdk.ChatCompletionMessageToolCall["type"]>()("function", "custom");
const parts = kindsOf<sdk.ChatCompletionContentPart["type"]>()("text image_url", "input_audio file");
const roles = kindsOf<sdk.ChatCompletionMessageParam["role"]>()("developer system user assistant tool", "function");

const systemMessage: FieldCases<sdk.ChatCompletionSystemMessageParam> = {
  role: used("system"),
  content: used("Hello"),
  name: ignored("a"),
};
const developerMessage: FieldCases<sdk.ChatCompletionDeveloperMessageParam> = { ...systemMessage, role: used("developer") };
const userMessage: FieldCases<sdk.ChatCompletionUserMessageParam> = {
  role: used("user"),
  content: used([
    { type: "text", text: "Hello" },
    { type: "image_url", image_url: image },
  ]),
  name: ignored("a"),
};
const assistantMessage: FieldCases<sdk.ChatCompletionAssistantMessageParam> = {
  role: used("assistant"),
  content: used("Hello"),
  name: ignored("a"),
  refusal: ignored("No."),
  tool_calls: used([call]),
  audio: refused({ id: "a" }),
  function_call: refused({ name: "f", arguments: "{}" }),
};
const toolMessage: FieldCases<sdk.ChatCompletionToolMessageParam> = {
  role: used("tool"),
  content: used("Hello"),
  tool_call_id: used("a"),
};

const textPart: FieldCases<sdk.ChatCompletionContentPartText> = {
  type: used("text"),
  text: used("Hello"),
  prompt_cache_breakpoint: ignored({ mode: "explicit" }),
};
const imagePart: FieldCases<sdk.ChatCompletionContentPartImage> = {
  type: used("image_url"),
  image_url: used(image),
  prompt_cache_breakpoint: ignored({ mode: "explicit" }),
};
const imageUrl: FieldCases<sdk.ChatCompletionContentPartImage.ImageURL> = { url: used(image.url), detail: refused("original") };

const inMessages = (...messages: readonly object[]) => ({ ...chat, messages });
const inPart = (part: object) => inMessages({ role: "user", content: [part] });
const inTools = (one: object) => ({ ...chat, tools: [one] });

test.each([
  ...rowsOf("", chatFields, chat),
  ...rowsOf("stream_options.", streamOptions, {}, (stream_options) => ({ ...chat, stream: true, stream_options })),
  ...rowsOf("response_format.json_schema.", schemaFields, { name: "a", schema: {} }, (json_schema) => ({
    ...chat,
    response_format: { type: "json_schema", json_schema },
  })),
  ...rowsOf("tools[0].function.", functionFields, tool.function, (one) => inTools({ ...tool, function: one })),
  ...refusedKinds(tools, "tools[0].type", (one) => ({ ...inTools(one), tool_choice: "required" })),
  ...refusedKinds(calls, "messages[0].tool_calls[0].type", (one) => inMessages({ role: "assistant", tool_calls: [one] })),
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
  ...rowsOf("messages[0].content[0].image_url.", imageUrl, image, (image_url) => inPart({ type: "image_url", image_url })),
])("the field %s of a chat completion", async (...row) => {
  await expectHandled(metered, key, "/v1/chat/completions", row);
});

test.each(roles)("a chat completion with a message of the role %s", async (role) => {
  const row = [role, inMessages({ role, name: "f", content: "a" }), "messages[0].role", undefined, undefined] as const;
  await expectHandled(metered, key, "/v1/chat/completions", row);
});

const app = useTestApp();
const paid = usePaidKey(app);

const completionFields: FieldCases<CompletionCreateParamsNonStreaming> = {
  model: shown(SMALL),
  prompt: refused(["a", "b"]),
  best_of: refused(2),
  echo: refused(true),
  frequency_penalty: ignored(1),
  logit_bias: refused({ "1": 5 }),
  logprobs: refused(1),
  max_tokens: shown(5),
  n: refused(2),
  presence_penalty: ignored(1),
  seed: ignored(1),
  stop: shown("a"),
  stream: ignored(false),
  stream_options: ignored({ include_usage: true }),
  suffix: shown("a"),
  temperature: ignored(1),
  top_p: ignored(1),
  user: used("a"),
};

test.each(rowsOf("", completionFields, { model: SMALL, prompt: "Hello", max_tokens: 5 }))(
  "the field %s of a text completion",
  async (...row) => expectHandled({ app }, paid, "/v1/completions", row),
);

const embeddingFields: FieldCases<EmbeddingCreateParams> = {
  input: shown(["a", "b"]),
  model: shown("vx-sandbox-embed"),
  dimensions: shown(8),
  encoding_format: shown("base64"),
  user: used("a"),
};

test.each(rowsOf("", embeddingFields, { model: "vx-sandbox-embed", input: "a" }))("the field %s of embeddings", async (...row) =>
  expectHandled({ app }, paid, "/v1/embeddings", row),
);

test("a field that is missing in a table is an error of the compiler", () => {
  // @ts-expect-error: the other fields are missing.
  const cases: FieldCases<EmbeddingCreateParams> = { model: used("a") };
  expect(cases).toBeDefined();
  // @ts-expect-error: the other roles are missing.
  expect(refusedKinds(kindsOf<"user" | "tool">()("user"), "role", () => ({}))).toEqual([]);
});
