import { anyObject, count, either, flag, list, object, text } from "./schema-parts.ts";

/** MessageCreateParams of the package @anthropic-ai/sdk. */

const cacheControl = object({ type: { const: "ephemeral" }, ttl: { enum: ["5m", "1h"] } }, ["type"]);
const anthropicText = object({ type: { const: "text" }, text, cache_control: cacheControl }, [
  "type",
  "text",
]);
const anthropicTool = object(
  { name: text, description: text, input_schema: anyObject, cache_control: cacheControl },
  ["name", "input_schema"],
);

export const anthropicRequest = object(
  {
    model: text,
    max_tokens: count,
    messages: list(
      object({ role: { enum: ["user", "assistant"] }, content: either(text, list(anthropicText, 1)) }, [
        "role",
        "content",
      ]),
      1,
    ),
    system: either(text, list(anthropicText, 1)),
    temperature: { type: "number", minimum: 0, maximum: 1 },
    top_k: { type: "integer", minimum: 0 },
    top_p: { type: "number", minimum: 0, maximum: 1 },
    stop_sequences: list(text, 1),
    stream: flag,
    tools: list(anthropicTool, 1),
    tool_choice: anyObject,
    thinking: anyObject,
    output_config: anyObject,
    metadata: object({ user_id: text }, []),
  },
  ["model", "max_tokens", "messages"],
);
