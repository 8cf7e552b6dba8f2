import { anyObject, count, either, flag, list, object, oneOf, share, text } from "./schema-parts.ts";

/** ChatCompletionCreateParams of the package openai, and `max_tokens`, which most servers use. */

const textPart = object({ type: { const: "text" }, text }, ["type", "text"]);
const imagePart = object(
  {
    type: { const: "image_url" },
    image_url: object({ url: { type: "string", pattern: "^(https?://|data:image/)" }, detail: oneOf("auto", "low", "high") }, [
      "url",
    ]),
  },
  ["type", "image_url"],
);
const toolCall = object(
  { id: text, type: { const: "function" }, function: object({ name: text, arguments: text }, ["name", "arguments"]) },
  ["id", "type", "function"],
);
const texts = either(text, list(textPart, 1));

// The content of an assistant may be absent or null in the published format. The server of llama-cpp-python fails then.
const message = either(
  object({ role: oneOf("system", "developer"), content: texts, name: text }, ["role", "content"]),
  object({ role: { const: "user" }, content: either(text, list(either(textPart, imagePart), 1)), name: text }, [
    "role",
    "content",
  ]),
  object({ role: { const: "assistant" }, content: texts, name: text, tool_calls: list(toolCall, 1) }, ["role", "content"]),
  object({ role: { const: "tool" }, content: texts, tool_call_id: text }, ["role", "content", "tool_call_id"]),
);

const name = { type: "string", pattern: "^[a-zA-Z0-9_-]{1,64}$" };

const tool = object(
  { type: { const: "function" }, function: object({ name, description: text, parameters: anyObject, strict: flag }, ["name"]) },
  ["type", "function"],
);

const toolChoice = either(
  oneOf("none", "auto", "required"),
  object({ type: { const: "function" }, function: object({ name }, ["name"]) }, ["type", "function"]),
);

const responseFormat = either(
  object({ type: oneOf("text", "json_object") }, ["type"]),
  object(
    {
      type: { const: "json_schema" },
      json_schema: object({ name, description: text, schema: anyObject, strict: flag }, ["name"]),
    },
    ["type", "json_schema"],
  ),
);

const penalty = { type: "number", minimum: -2, maximum: 2 };

export const openaiRequest = {
  ...object(
    {
      model: text,
      messages: list(message, 1),
      max_tokens: count,
      max_completion_tokens: count,
      temperature: { type: "number", minimum: 0, maximum: 2 },
      top_p: share,
      stop: either(text, { ...list(text, 1), maxItems: 4 }),
      stream: flag,
      stream_options: object({ include_usage: flag }, []),
      tools: list(tool, 1),
      tool_choice: toolChoice,
      parallel_tool_calls: flag,
      response_format: responseFormat,
      seed: { type: "integer" },
      presence_penalty: penalty,
      frequency_penalty: penalty,
      reasoning_effort: oneOf("none", "minimal", "low", "medium", "high", "xhigh", "max"),
      user: text,
      prompt_cache_retention: oneOf("in_memory", "24h"),
    },
    ["model", "messages"],
  ),
  // "tool_choice is only allowed when tools are specified", and the same for parallel_tool_calls.
  dependentRequired: { tool_choice: ["tools"], parallel_tool_calls: ["tools"] },
};
