// Each field of the requests of Anthropic's SDK is supported, ignored as docs/anthropic.md says, or refused by its name.
import type { MessageCreateParamsNonStreaming as BetaParams } from "@anthropic-ai/sdk/resources/beta/messages/messages";
import type * as sdk from "@anthropic-ai/sdk/resources/messages/messages";
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
import { said } from "../support/openai.ts";
import { started } from "../support/started.ts";

const metered = useMetered();
const key = started(() => metered.payer(100_000_000n));

const base = { model: ABLE_MODEL, max_tokens: 2_000, messages: [said("Hello")] };
const tool: sdk.Tool = { name: "f", input_schema: { type: "object" } };
const image = { type: "image", source: { type: "base64", media_type: "image/png", data: PNG.toString("base64") } } as const;
const use = { type: "tool_use", id: "a", name: "f", input: {} } as const;
const result = { type: "tool_result", tool_use_id: "a" } as const;
const ephemeral = { type: "ephemeral" } as const;

const counted: FieldCases<Omit<sdk.MessageCountTokensParams, "user_profile_id" | "workspace_id">> = {
  messages: ignored([said("Hello")]),
  model: shown(ABLE_MODEL),
  cache_control: ignored(ephemeral),
  output_config: ignored({ effort: "low" }),
  speed: ignored("standard"),
  system: shown([{ type: "text", text: "a" }]),
  thinking: ignored({ type: "disabled" }),
  tool_choice: ignored({ type: "none" }),
  tools: shown([tool]),
};

/** The SDK sends the other two fields of its type as headers. Older SDKs sent output_format. */
const fields: FieldCases<
  Omit<sdk.MessageCreateParamsNonStreaming, "user_profile_id" | "workspace_id"> & Pick<BetaParams, "output_format">
> = {
  ...counted,
  messages: used([said("Hello")]),
  model: used(ABLE_MODEL),
  output_config: used({ effort: "low" }),
  system: used([{ type: "text", text: "a" }]),
  thinking: used({ type: "disabled" }),
  tool_choice: used({ type: "none" }),
  tools: used([tool]),
  max_tokens: used(5),
  container: refused("a"),
  diagnostics: refused({ previous_message_id: "msg_a" }),
  inference_geo: refused("eu"),
  metadata: used({ user_id: "a" }),
  output_format: refused({ type: "json_schema", schema: { type: "object" } }),
  service_tier: ignored("standard_only"),
  speed: refused("fast"),
  stop_sequences: used(["a"]),
  stream: ignored(false),
};

const metadata: FieldCases<sdk.Metadata> = { user_id: used("a") };
const outputConfig: FieldCases<sdk.OutputConfig> = {
  effort: used("max"),
  format: used({ type: "json_schema", schema: { type: "object" } }),
};
const outputFormat: FieldCases<sdk.JSONOutputFormat> = { type: used("json_schema"), schema: used({ type: "object" }) };
const enabled: FieldCases<sdk.ThinkingConfigEnabled> = {
  type: used("enabled"),
  budget_tokens: used(1_024),
  display: refused("omitted"),
};
const adaptive: FieldCases<sdk.ThinkingConfigAdaptive> = { type: used("adaptive"), display: refused("omitted") };

const toolFields: FieldCases<sdk.Tool> = {
  type: ignored("custom"),
  name: used("f"),
  description: used("a"),
  input_schema: used({ type: "object" }),
  cache_control: ignored(ephemeral),
  strict: used(true),
  eager_input_streaming: ignored(true),
  allowed_callers: refused(["code_execution_20250825"]),
  defer_loading: refused(true),
  input_examples: refused([{ a: 1 }]),
};
const toolChoice: FieldCases<sdk.ToolChoiceTool> = { type: used("tool"), name: used("f"), disable_parallel_tool_use: used(true) };

const textBlock: FieldCases<sdk.TextBlockParam> = {
  type: used("text"),
  text: used("a"),
  cache_control: ignored(ephemeral),
  citations: ignored([]),
};
const imageBlock: FieldCases<sdk.ImageBlockParam> = {
  type: used("image"),
  source: used(image.source),
  cache_control: ignored(ephemeral),
  transformations: refused({ oversized_image: "error" }),
};
const thinkingBlock: FieldCases<sdk.ThinkingBlockParam> = {
  type: used("thinking"),
  thinking: used("a"),
  signature: ignored("a"),
};
const redactedBlock: FieldCases<sdk.RedactedThinkingBlockParam> = { type: used("redacted_thinking"), data: used("a") };
const useBlock: FieldCases<sdk.ToolUseBlockParam> = {
  type: used("tool_use"),
  id: used("a"),
  name: used("f"),
  input: used({}),
  cache_control: ignored(ephemeral),
  caller: refused({ type: "code_execution_20250825", tool_id: "a" }),
  toolset_name: refused("a"),
};
const resultBlock: FieldCases<sdk.ToolResultBlockParam> = {
  type: used("tool_result"),
  tool_use_id: used("a"),
  content: used([{ type: "text", text: "a" }]),
  is_error: ignored(true),
  cache_control: ignored(ephemeral),
  toolset_name: refused("a"),
};

const thinkings = kindsOf<sdk.ThinkingConfigParam["type"]>()("enabled adaptive disabled", "between_tools");
const choices = kindsOf<sdk.ToolChoice["type"]>()("auto any tool none");
const sources = kindsOf<sdk.ImageBlockParam["source"]["type"]>()("base64 url", "file");
const tools = kindsOf<NonNullable<sdk.ToolUnion["type"]>>()(
  "custom",
  "bash_20250124 browser_toolset_20260801 code_execution_20250522 code_execution_20250825 code_execution_20260120",
  "code_execution_20260521 computer_toolset_20260801 memory_20250818 text_editor_20250124 text_editor_20250429",
  "text_editor_20250728 tool_search_tool_bm25 tool_search_tool_bm25_20251119 tool_search_tool_regex",
  "tool_search_tool_regex_20251119 web_fetch_20250910 web_fetch_20260209 web_fetch_20260309 web_fetch_20260318",
  "web_search_20250305 web_search_20260209 web_search_20260318",
);
const blocks = kindsOf<sdk.ContentBlockParam["type"]>()(
  "text image tool_use tool_result thinking redacted_thinking",
  "bash_code_execution_tool_result code_execution_tool_result container_upload document search_result",
  "server_tool_use text_editor_code_execution_tool_result tool_search_tool_result web_fetch_tool_result",
  "web_search_tool_result",
);

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
  ...rowsOf("thinking.", enabled, { type: "enabled", budget_tokens: 1_024 }, (thinking) => ({ ...base, thinking })),
  ...rowsOf("thinking.", adaptive, { type: "adaptive" }, (thinking) => ({ ...base, thinking })),
  ...refusedKinds(thinkings, "thinking.type", (thinking) => ({ ...base, thinking })),
  ...rowsOf("tools[0].", toolFields, tool, inTools),
  ...refusedKinds(tools, "tools[0].type", (one) => ({ ...inTools({ ...tool, ...one }), tool_choice: { type: "any" } })),
  ...rowsOf("tool_choice.", toolChoice, { type: "tool", name: "f" }, (tool_choice) => ({ ...inTools(tool), tool_choice })),
  ...refusedKinds(choices, "tool_choice.type", (tool_choice) => ({ ...base, tool_choice })),
  ...rowsOf("messages[0].content[0].", textBlock, { type: "text", text: "a" }, inUser),
  ...rowsOf("messages[0].content[0].", imageBlock, image, inUser),
  ...refusedKinds(sources, "messages[0].content[0].source.type", (source) => inUser({ type: "image", source })),
  ...refusedKinds(blocks, "messages[0].content[0].type", inUser),
  ...rowsOf("messages[1].content[0].", thinkingBlock, { type: "thinking", thinking: "a" }, afterThinking),
  ...rowsOf("messages[1].content[0].", redactedBlock, { type: "redacted_thinking", data: "a" }, afterThinking),
  ...rowsOf("messages[1].content[0].", useBlock, use, inAssistant),
  ...rowsOf("messages[2].content[0].", resultBlock, result, (block) =>
    inMessages(said("a"), { role: "assistant", content: [use] }, { role: "user", content: [block] }),
  ),
])("the field %s of a message", async (...row) => {
  await expectHandled(metered, key, "/v1/messages", row);
});

test.each(rowsOf("", counted, { model: ABLE_MODEL, messages: [said("a")], tools: [tool] }))(
  "the field %s of a count of tokens",
  async (...row) => expectHandled(metered, key, "/v1/messages/count_tokens", row),
);
