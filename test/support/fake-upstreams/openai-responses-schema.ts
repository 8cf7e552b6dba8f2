import { anyObject, count, either, flag, list, object, oneOf, type Schema, share, text } from "./schema-parts.ts";

/** ResponseCreateParams of the package openai, without hosted tools and stored state. */

function item(type: string, properties: Record<string, Schema>, required = Object.keys(properties)): Schema {
  return object({ type: { const: type }, ...properties }, ["type", ...required]);
}

const name = { type: "string", pattern: "^[a-zA-Z0-9_-]{1,64}$" };
const inputText = item("input_text", { text });
const inputImage = item("input_image", {
  image_url: { type: "string", pattern: "^(https?://|data:image/)" },
  detail: oneOf("low", "high", "auto", "original"),
});
const content = either(text, list(either(inputText, inputImage), 1));

const inputItem = either(
  object({ role: oneOf("user", "system", "developer"), content }, ["role", "content"]),
  // Parts of the input are not accepted in messages of the assistant.
  object({ role: { const: "assistant" }, content: text }, ["role", "content"]),
  item("function_call", { call_id: text, name, arguments: text }),
  item("function_call_output", { call_id: text, output: content }),
  // The types require the id, but the API accepts items without one, as Codex sends them.
  item("reasoning", { id: text, summary: list(item("summary_text", { text })), encrypted_content: text }, [
    "summary",
    "encrypted_content",
  ]),
);

const tool = item("function", { name, description: text, parameters: anyObject, strict: flag }, ["name", "parameters", "strict"]);

const format = either(
  item("text", {}),
  item("json_object", {}),
  item("json_schema", { name, schema: anyObject, description: text, strict: flag }, ["name", "schema"]),
);

export const openaiResponsesRequest = {
  ...object(
    {
      model: text,
      input: either(text, list(inputItem, 1)),
      instructions: text,
      max_output_tokens: count,
      temperature: { type: "number", minimum: 0, maximum: 2 },
      top_p: share,
      reasoning: object(
        {
          effort: oneOf("none", "minimal", "low", "medium", "high", "xhigh", "max"),
          summary: oneOf("auto", "concise", "detailed"),
        },
        [],
      ),
      text: object({ format, verbosity: oneOf("low", "medium", "high") }, []),
      tools: list(tool, 1),
      tool_choice: either(oneOf("none", "auto", "required"), item("function", { name })),
      parallel_tool_calls: flag,
      include: list(oneOf("reasoning.encrypted_content"), 1),
      store: { const: false },
      stream: flag,
      user: text,
      prompt_cache_retention: oneOf("in_memory", "24h"),
    },
    ["model", "input"],
  ),
  dependentRequired: { tool_choice: ["tools"], parallel_tool_calls: ["tools"] },
};
