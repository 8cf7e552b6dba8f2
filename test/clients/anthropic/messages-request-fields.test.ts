// Each field of the requests of Anthropic's SDK is supported, ignored as docs/anthropic.md says, or refused by its name.
import type { MessageCreateParamsNonStreaming as BetaParams } from "@anthropic-ai/sdk/resources/beta/messages/messages";
import type {
  ContentBlockParam,
  ImageBlockParam,
  JSONOutputFormat,
  MessageCountTokensParams,
  MessageCreateParamsNonStreaming,
  Metadata,
  OutputConfig,
  RedactedThinkingBlockParam,
  TextBlockParam,
  ThinkingBlockParam,
  ThinkingConfigAdaptive,
  ThinkingConfigEnabled,
  ThinkingConfigParam,
  Tool,
  ToolChoice,
  ToolChoiceTool,
  ToolResultBlockParam,
  ToolUnion,
  ToolUseBlockParam,
} from "@anthropic-ai/sdk/resources/messages/messages";
import { test } from "vitest";
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

const base = { model: SMALL, max_tokens: 2_000, messages: [said("Hello")] };
const tool: Tool = { name: "f", input_schema: { type: "object" } };
const image = {
  type: "image",
  source: { type: "base64", media_type: "image/png", data: PNG.toString("base64") },
} as const;
const use = { type: "tool_use", id: "a", name: "f", input: {} } as const;
const result = { type: "tool_result", tool_use_id: "a" } as const;
const ephemeral = { type: "ephemeral" } as const;

const counted: FieldCases<Omit<MessageCountTokensParams, "user_profile_id" | "workspace_id">> = {
  messages: accepted([said("Hello")]),
  model: accepted(SMALL),
  cache_control: accepted(ephemeral),
  output_config: accepted({ effort: "low" }),
  speed: accepted("standard"),
  system: accepted([{ type: "text", text: "a" }]),
  thinking: accepted({ type: "disabled" }),
  tool_choice: accepted({ type: "none" }),
  tools: accepted([tool]),
};

/** The SDK sends the other two fields of its type as headers. Older SDKs sent output_format. */
const fields: FieldCases<
  Omit<MessageCreateParamsNonStreaming, "user_profile_id" | "workspace_id"> &
    Pick<BetaParams, "output_format">
> = {
  ...counted,
  max_tokens: accepted(5),
  container: refused("a"),
  diagnostics: refused({ previous_message_id: "msg_a" }),
  inference_geo: refused("eu"),
  metadata: accepted({ user_id: "a" }),
  output_format: refused({ type: "json_schema", schema: { type: "object" } }),
  service_tier: accepted("standard_only"),
  speed: refused("fast"),
  stop_sequences: accepted(["a"]),
  stream: accepted(false),
};

const metadata: FieldCases<Metadata> = { user_id: accepted("a") };
const outputConfig: FieldCases<OutputConfig> = {
  effort: accepted("max"),
  format: accepted({ type: "json_schema", schema: { type: "object" } }),
};
const outputFormat: FieldCases<JSONOutputFormat> = {
  type: accepted("json_schema"),
  schema: accepted({ type: "object" }),
};
const enabled: FieldCases<ThinkingConfigEnabled> = {
  type: accepted("enabled"),
  budget_tokens: accepted(1_024),
  display: refused("omitted"),
};
const adaptive: FieldCases<ThinkingConfigAdaptive> = {
  type: accepted("adaptive"),
  display: refused("omitted"),
};

const toolFields: FieldCases<Tool> = {
  type: accepted("custom"),
  name: accepted("f"),
  description: accepted("a"),
  input_schema: accepted({ type: "object" }),
  cache_control: accepted(ephemeral),
  strict: accepted(true),
  eager_input_streaming: accepted(true),
  allowed_callers: refused(["code_execution_20250825"]),
  defer_loading: refused(true),
  input_examples: refused([{ a: 1 }]),
};
const toolChoice: FieldCases<ToolChoiceTool> = {
  type: accepted("tool"),
  name: accepted("f"),
  disable_parallel_tool_use: accepted(true),
};

const textBlock: FieldCases<TextBlockParam> = {
  type: accepted("text"),
  text: accepted("a"),
  cache_control: accepted(ephemeral),
  citations: accepted([]),
};
const imageBlock: FieldCases<ImageBlockParam> = {
  type: accepted("image"),
  source: accepted(image.source),
  cache_control: accepted(ephemeral),
  transformations: refused({ oversized_image: "error" }),
};
const thinkingBlock: FieldCases<ThinkingBlockParam> = {
  type: accepted("thinking"),
  thinking: accepted("a"),
  signature: accepted("a"),
};
const redactedBlock: FieldCases<RedactedThinkingBlockParam> = {
  type: accepted("redacted_thinking"),
  data: accepted("a"),
};
const useBlock: FieldCases<ToolUseBlockParam> = {
  type: accepted("tool_use"),
  id: accepted("a"),
  name: accepted("f"),
  input: accepted({}),
  cache_control: accepted(ephemeral),
  caller: refused({ type: "code_execution_20250825", tool_id: "a" }),
  toolset_name: refused("a"),
};
const resultBlock: FieldCases<ToolResultBlockParam> = {
  type: accepted("tool_result"),
  tool_use_id: accepted("a"),
  content: accepted([{ type: "text", text: "a" }]),
  is_error: accepted(true),
  cache_control: accepted(ephemeral),
  toolset_name: refused("a"),
};

const thinkings: Kinds<ThinkingConfigParam["type"]> = {
  enabled: true,
  adaptive: true,
  disabled: true,
  between_tools: false,
};
const choices: Kinds<ToolChoice["type"]> = { auto: true, any: true, tool: true, none: true };
const sources: Kinds<ImageBlockParam["source"]["type"]> = { base64: true, url: true, file: false };
const tools: Kinds<NonNullable<ToolUnion["type"]>> = {
  custom: true,
  bash_20250124: false,
  browser_toolset_20260801: false,
  code_execution_20250522: false,
  code_execution_20250825: false,
  code_execution_20260120: false,
  code_execution_20260521: false,
  computer_toolset_20260801: false,
  memory_20250818: false,
  text_editor_20250124: false,
  text_editor_20250429: false,
  text_editor_20250728: false,
  tool_search_tool_bm25: false,
  tool_search_tool_bm25_20251119: false,
  tool_search_tool_regex: false,
  tool_search_tool_regex_20251119: false,
  web_fetch_20250910: false,
  web_fetch_20260209: false,
  web_fetch_20260309: false,
  web_fetch_20260318: false,
  web_search_20250305: false,
  web_search_20260209: false,
  web_search_20260318: false,
};
const blocks: Kinds<ContentBlockParam["type"]> = {
  text: true,
  image: true,
  tool_use: true,
  tool_result: true,
  thinking: true,
  redacted_thinking: true,
  bash_code_execution_tool_result: false,
  code_execution_tool_result: false,
  container_upload: false,
  document: false,
  search_result: false,
  server_tool_use: false,
  text_editor_code_execution_tool_result: false,
  tool_search_tool_result: false,
  web_fetch_tool_result: false,
  web_search_tool_result: false,
};

const inMessages = (...messages: readonly object[]) => ({ ...base, messages });
const inUser = (block: object) => inMessages({ role: "user", content: [block] });
const inAssistant = (block: object) =>
  inMessages(said("a"), { role: "assistant", content: [block] }, { role: "user", content: [result] });
const afterThinking = (block: object) =>
  inMessages(said("a"), { role: "assistant", content: [block, { type: "text", text: "a" }] }, said("a"));
const inTools = (one: object) => ({ ...base, tools: [one] });

test.each([
  ...rowsOf("", fields, { ...base, tools: [tool] }),
  ...rowsOf("metadata.", metadata, {}, (one) => ({ ...base, metadata: one })),
  ...rowsOf("output_config.", outputConfig, {}, (one) => ({ ...base, output_config: one })),
  ...rowsOf("output_config.format.", outputFormat, { type: "json_schema", schema: {} }, (format) => ({
    ...base,
    output_config: { format },
  })),
  ...rowsOf("thinking.", enabled, { type: "enabled", budget_tokens: 1_024 }, (thinking) => ({
    ...base,
    thinking,
  })),
  ...rowsOf("thinking.", adaptive, { type: "adaptive" }, (thinking) => ({ ...base, thinking })),
  ...refusedKinds(thinkings, "thinking.type", (thinking) => ({ ...base, thinking })),
  ...rowsOf("tools[0].", toolFields, tool, inTools),
  ...refusedKinds(tools, "tools[0].type", (one) => ({
    ...inTools({ ...tool, ...one }),
    tool_choice: { type: "any" },
  })),
  ...rowsOf("tool_choice.", toolChoice, { type: "tool", name: "f" }, (tool_choice) => ({
    ...inTools(tool),
    tool_choice,
  })),
  ...refusedKinds(choices, "tool_choice.type", (tool_choice) => ({ ...base, tool_choice })),
  ...rowsOf("messages[0].content[0].", textBlock, { type: "text", text: "a" }, inUser),
  ...rowsOf("messages[0].content[0].", imageBlock, image, inUser),
  ...refusedKinds(sources, "messages[0].content[0].source.type", (source) =>
    inUser({ type: "image", source }),
  ),
  ...refusedKinds(blocks, "messages[0].content[0].type", inUser),
  ...rowsOf("messages[1].content[0].", thinkingBlock, { type: "thinking", thinking: "a" }, afterThinking),
  ...rowsOf(
    "messages[1].content[0].",
    redactedBlock,
    { type: "redacted_thinking", data: "a" },
    afterThinking,
  ),
  ...rowsOf("messages[1].content[0].", useBlock, use, inAssistant),
  ...rowsOf("messages[2].content[0].", resultBlock, result, (block) =>
    inMessages(said("a"), { role: "assistant", content: [use] }, { role: "user", content: [block] }),
  ),
])("the field %s of a message", async (...row) => {
  await expectHandled(app, key.secret, "/v1/messages", row);
});

test.each(rowsOf("", counted, { model: SMALL, messages: [said("a")], tools: [tool] }))(
  "the field %s of a count of tokens",
  async (...row) => expectHandled(app, key.secret, "/v1/messages/count_tokens", row),
);
