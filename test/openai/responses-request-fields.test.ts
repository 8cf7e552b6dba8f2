// Each field of the requests of OpenAI's SDK is supported, ignored as docs/openai.md says, or refused by its name.
import type * as sdk from "openai/resources/responses/responses";
import type { Reasoning } from "openai/resources/shared";
import { test } from "vitest";
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
import { PNG } from "../support/images.ts";
import { ABLE_MODEL, useMetered } from "../support/metered.ts";
import { started } from "../support/started.ts";

const metered = useMetered();
const key = started(() => metered.payer(100_000_000n));

const base = { model: ABLE_MODEL, max_output_tokens: 20, input: "Hello" };
const tool = { type: "function", name: "f", parameters: { type: "object" }, strict: false } as const;
const call = { type: "function_call", call_id: "a", name: "f", arguments: "{}" } as const;
const url = `data:image/png;base64,${PNG.toString("base64")}`;

const fields: FieldCases<sdk.ResponseCreateParamsNonStreaming> = {
  access_programs: refused({ cyber: "standard" }),
  background: refused(true),
  context_management: refused([{ type: "compaction" }]),
  conversation: refused("conv_a"),
  image: refused({ context_compression: "enabled" }),
  include: ignored(["reasoning.encrypted_content"]),
  input: used("Hello"),
  instructions: used("Be short."),
  max_output_tokens: used(20),
  max_tool_calls: refused(1),
  metadata: shown({ a: "b" }),
  model: used(ABLE_MODEL),
  moderation: refused({ model: "m" }),
  parallel_tool_calls: shown(false),
  previous_response_id: refused("resp_a"),
  prompt: refused({ id: "a" }),
  prompt_cache_key: shown("a"),
  prompt_cache_options: refused({ prewarm: true }),
  prompt_cache_retention: ignored("24h"),
  reasoning: used({ effort: "low" }),
  safety_identifier: used("a"),
  service_tier: refused("flex"),
  store: refused(true),
  stream: ignored(false),
  stream_options: ignored({ include_obfuscation: true }),
  temperature: used(1),
  text: used({ format: { type: "json_object" } }),
  tool_choice: shown("none"),
  tools: used([tool]),
  top_logprobs: refused(1),
  top_p: used(1),
  truncation: refused("auto"),
  user: used("a"),
};

const streamOptions: FieldCases<sdk.ResponseCreateParams.StreamOptions> = { include_obfuscation: ignored(true) };

const reasoning: FieldCases<Reasoning> = {
  context: refused("all_turns"),
  effort: used("max"),
  generate_summary: refused("auto"),
  mode: refused("pro"),
  summary: shown("auto"),
};

const text: FieldCases<sdk.ResponseTextConfig> = { format: ignored({ type: "text" }), verbosity: refused("low") };

const schemaFormat: FieldCases<sdk.ResponseFormatTextJSONSchemaConfig> = {
  type: used("json_schema"),
  name: used("a"),
  schema: used({ type: "object" }),
  description: used("a"),
  strict: used(true),
};

const functionFields: FieldCases<sdk.FunctionTool> = {
  type: used("function"),
  name: used("f"),
  parameters: used({ type: "object" }),
  strict: used(true),
  description: used("a"),
  allowed_callers: refused(["programmatic"]),
  async: refused(true),
  defer_loading: refused(true),
  output_schema: refused({ type: "object" }),
};

const callFields: FieldCases<sdk.ResponseFunctionToolCall> = {
  type: used("function_call"),
  id: ignored("fc_a"),
  call_id: used("a"),
  name: used("f"),
  arguments: used("{}"),
  status: ignored("completed"),
  async: refused(true),
  caller: refused({ type: "program", caller_id: "a" }),
  namespace: refused("a"),
};

const outputFields: FieldCases<sdk.ResponseInputItem.FunctionCallOutput> = {
  type: used("function_call_output"),
  id: ignored("a"),
  call_id: used("a"),
  output: used("Hello"),
  name: ignored("f"),
  status: ignored("completed"),
  caller: refused({ type: "program", caller_id: "a" }),
  namespace: refused("a"),
};

const messageFields: FieldCases<sdk.ResponseOutputMessage> = {
  type: ignored("message"),
  id: ignored("msg_a"),
  role: used("assistant"),
  content: used([{ type: "output_text", text: "Hello", annotations: [], logprobs: [] }]),
  status: ignored("completed"),
  phase: ignored("commentary"),
};

const reasoningFields: FieldCases<sdk.ResponseReasoningItem> = {
  type: used("reasoning"),
  id: ignored("rs_a"),
  summary: ignored([{ type: "summary_text", text: "a" }]),
  content: ignored([{ type: "reasoning_text", text: "a" }]),
  status: ignored("completed"),
  encrypted_content: ignored("a"),
};

const inputText: FieldCases<sdk.ResponseInputText> = {
  type: used("input_text"),
  text: used("Hello"),
  prompt_cache_breakpoint: ignored({ mode: "explicit" }),
};

const inputImage: FieldCases<sdk.ResponseInputImage> = {
  type: used("input_image"),
  image_url: used(url),
  detail: refused("original"),
  file_id: refused("file_a"),
  prompt_cache_breakpoint: ignored({ mode: "explicit" }),
};

const contents = kindsOf<sdk.ResponseInputContent["type"]>()("input_text input_image", "input_file");
const formats = kindsOf<sdk.ResponseFormatTextConfig["type"]>()("text json_object json_schema");

const tools = kindsOf<sdk.Tool["type"]>()(
  "function",
  "apply_patch code_interpreter computer computer_use_preview custom file_search image_generation local_shell mcp",
  "namespace programmatic_tool_calling shell tool_search web_search web_search_2025_08_26 web_search_preview",
  "web_search_preview_2025_03_11",
);

type ToolChoice = Exclude<NonNullable<sdk.ResponseCreateParamsNonStreaming["tool_choice"]>, string>;
const choices = kindsOf<ToolChoice["type"]>()(
  "function",
  "allowed_tools apply_patch code_interpreter computer computer_use computer_use_preview custom file_search",
  "image_generation mcp programmatic_tool_calling shell web_search_preview web_search_preview_2025_03_11",
);

const items = kindsOf<NonNullable<sdk.ResponseInputItem["type"]>>()(
  "message function_call function_call_output reasoning",
  "additional_tools apply_patch_call apply_patch_call_output code_interpreter_call compaction compaction_trigger",
  "computer_call computer_call_output configuration_update custom_tool_call custom_tool_call_output",
  "file_search_call image_generation_call item_reference local_shell_call local_shell_call_output",
  "mcp_approval_request mcp_approval_response mcp_call mcp_list_tools program program_output shell_call",
  "shell_call_output tool_search_call tool_search_output web_search_call",
);

const includes = kindsOf<sdk.ResponseIncludable>()(
  "reasoning.encrypted_content",
  "file_search_call.results web_search_call.results web_search_call.action.sources message.input_image.image_url",
  "computer_call_output.output.image_url code_interpreter_call.outputs message.output_text.logprobs",
);

const inItems = (...input: readonly object[]) => ({ ...base, input });
const inContent = (part: object) => inItems({ role: "user", content: [part] });
const inTools = (one: object) => ({ ...base, tools: [one] });
const result = { type: "function_call_output", call_id: "a", output: "a" };

test.each([
  ...rowsOf("", fields, base),
  ...rowsOf("stream_options.", streamOptions, {}, (stream_options) => ({ ...base, stream: true, stream_options })),
  ...rowsOf("reasoning.", reasoning, {}, (one) => ({ ...base, reasoning: one })),
  ...rowsOf("text.", text, {}, (one) => ({ ...base, text: one })),
  ...rowsOf("text.format.", schemaFormat, { type: "json_schema", name: "a", schema: {} }, (format) => ({
    ...base,
    text: { format },
  })),
  ...refusedKinds(formats, "text.format.type", (format) => ({ ...base, text: { format } })),
  ...rowsOf("tools[0].", functionFields, tool, inTools),
  ...refusedKinds(tools, "tools[0].type", (one) => ({ ...inTools(one), tool_choice: "required" })),
  ...refusedKinds(choices, "tool_choice.type", (choice) => ({ ...base, tool_choice: choice })),
  ...rowsOf("input[0].", callFields, call, (one) => inItems(one, result)),
  ...rowsOf("input[1].", outputFields, result, (one) => inItems(call, one)),
  ...rowsOf("input[0].", messageFields, { role: "assistant", content: "a" }, inItems),
  ...rowsOf("input[0].", reasoningFields, { type: "reasoning", id: "a", summary: [] }, (one) =>
    inItems(one, { role: "assistant", content: "a" }, { role: "user", content: "a" }),
  ),
  ...refusedKinds(items, "input[0].type", inItems),
  ...rowsOf("input[0].content[0].", inputText, { type: "input_text", text: "a" }, inContent),
  ...rowsOf("input[0].content[0].", inputImage, { type: "input_image", image_url: url }, inContent),
  ...refusedKinds(contents, "input[0].content[0].type", inContent),
])("the field %s of a response", async (...row) => {
  await expectHandled(metered, key, "/v1/responses", row);
});

test.each(includes)("%s is not included", async (name) => {
  const body = { ...base, include: [name] };
  await expectHandled(metered, key, "/v1/responses", [name, body, "include[0]", undefined, undefined]);
});
