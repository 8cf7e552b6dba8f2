import { anyObject, count, either, flag, list, object, oneOf, type Schema, share, text } from "./schema-parts.ts";

/**
 * MessageCreateParams of the package @anthropic-ai/sdk, without what tools of the server need. The sampling
 * parameters are those of earlier versions of the package: the API still has them for older models.
 */

const visibleText = { type: "string", pattern: "\\S" };

const cacheControl = object({ type: { const: "ephemeral" }, ttl: oneOf("5m", "1h") }, ["type"]);

function block(type: string, properties: Record<string, Schema>, required = Object.keys(properties)): Schema {
  return object({ type: { const: type }, ...properties }, ["type", ...required]);
}

const image = block(
  "image",
  {
    cache_control: cacheControl,
    source: either(
      block("base64", {
        media_type: oneOf("image/jpeg", "image/png", "image/gif", "image/webp"),
        data: { type: "string", pattern: "^[A-Za-z0-9+/]+={0,2}$" },
      }),
      block("url", { url: { type: "string", pattern: "^https?://" } }),
    ),
  },
  ["source"],
);
// "text content blocks must contain non-whitespace text"
const textBlock = block("text", { text: visibleText, cache_control: cacheControl }, ["text"]);
const toolResult = block(
  "tool_result",
  { tool_use_id: text, content: either(text, list(either(textBlock, image), 1)), is_error: flag, cache_control: cacheControl },
  ["tool_use_id"],
);
const toolName = { type: "string", pattern: "^[a-zA-Z0-9_-]{1,128}$" };

const userMessage = object(
  { role: { const: "user" }, content: either(visibleText, list(either(textBlock, image, toolResult), 1)) },
  ["role", "content"],
);
const assistantBlock = either(
  textBlock,
  block("thinking", { thinking: text, signature: visibleText }),
  block("redacted_thinking", { data: visibleText }),
  block("tool_use", { id: text, name: toolName, input: anyObject }),
);
const assistantMessage = object({ role: { const: "assistant" }, content: either(visibleText, list(assistantBlock, 1)) }, [
  "role",
  "content",
]);

const tool = object(
  {
    name: toolName,
    description: text,
    input_schema: { type: "object", properties: { type: { const: "object" } }, required: ["type"] },
    strict: flag,
    cache_control: cacheControl,
  },
  ["name", "input_schema"],
);
const single = { disable_parallel_tool_use: flag };
const toolChoice = either(
  block("auto", single, []),
  block("any", single, []),
  block("none", {}),
  block("tool", { name: toolName, ...single }, ["name"]),
);
const thinking = either(
  block("enabled", { budget_tokens: { type: "integer", minimum: 1_024 } }),
  block("disabled", {}),
  block("adaptive", {}),
);
const outputConfig = object(
  { effort: oneOf("low", "medium", "high", "xhigh", "max"), format: block("json_schema", { schema: anyObject }) },
  [],
);

export const anthropicRequest = {
  ...object(
    {
      model: text,
      max_tokens: count,
      messages: list(either(userMessage, assistantMessage), 1),
      system: either(text, list(textBlock, 1)),
      temperature: share,
      top_k: { type: "integer", minimum: 0 },
      top_p: share,
      stop_sequences: list(visibleText, 1),
      stream: flag,
      tools: list(tool, 1),
      tool_choice: toolChoice,
      thinking,
      output_config: outputConfig,
      metadata: object({ user_id: text }, []),
    },
    ["model", "max_tokens", "messages"],
  ),
  dependentRequired: { tool_choice: ["tools"] },
};
