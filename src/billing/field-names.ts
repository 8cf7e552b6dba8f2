import type { Format } from "../domain/prompt.ts";

/** Fields of native requests that other formats name differently. */
type Field = "messages" | "response_format" | "reasoning_effort" | "stop" | "user";

const NAMES: Readonly<Record<Format, Readonly<Partial<Record<Field, string>>>>> = {
  native: {},
  "openai-chat": {},
  "openai-responses": {
    messages: "input",
    response_format: "text.format",
    reasoning_effort: "reasoning.effort",
  },
  "anthropic-messages": {
    response_format: "output_config.format",
    reasoning_effort: "thinking",
    stop: "stop_sequences",
    user: "metadata.user_id",
  },
};

/** The name of a tool. In chat completions, the function of a tool is an object of its own. */
export function toolNameField(format: Format, i: number): string {
  return format === "openai-chat" ? `tools[${i}].function.name` : `tools[${i}].name`;
}

/** The name of the schema of the reply. */
export function schemaNameField(format: Format): string {
  const member = format === "openai-chat" ? "json_schema.name" : "name";
  return `${fieldName(format, "response_format")}.${member}`;
}

/** The name of a field in the caller's format. */
export function fieldName(format: Format, field: string): string {
  return (NAMES[format] as Readonly<Record<string, string>>)[field] ?? field;
}
