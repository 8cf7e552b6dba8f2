import type { Value } from "@bufbuild/protobuf/wkt";
import type { ChatMessage } from "../../gen/vx/openai/v1/chat_pb.js";
import { DomainError } from "../domain/errors.ts";
import type { PromptMessage } from "../domain/prompt.ts";
import { tooLong } from "../rules/text-limits.ts";

const MAX_CHARACTERS = 400_000;
const MAX_PARTS = 1_000;

/** Converts one of OpenAI's messages. Content other than text is rejected with the name of its field. */
export function promptMessageOf(message: ChatMessage, i: number): PromptMessage {
  const field = `messages[${i}]`;
  const { role, content, toolCalls, functionCall, audio } = message;
  if (!isEmptyList(toolCalls)) throw unsupported(`${field}.tool_calls`);
  if (!isNothing(functionCall)) throw unsupported(`${field}.function_call`);
  if (!isNothing(audio)) throw unsupported(`${field}.audio`);
  return {
    role: role === "developer" ? "system" : (role as PromptMessage["role"]),
    content: textOf(content, `${field}.content`),
  };
}

function textOf(content: Value | undefined, field: string): string {
  if (content?.kind.case === "stringValue") return bounded(content.kind.value, field);
  if (content?.kind.case !== "listValue") {
    throw DomainError.ofField(field, "must be a string or a list of text parts");
  }
  const { values } = content.kind.value;
  if (values.length === 0 || values.length > MAX_PARTS) {
    throw DomainError.ofField(field, `must have 1 to ${MAX_PARTS} parts`);
  }
  return bounded(values.map((part, i) => partText(part, `${field}[${i}]`)).join(""), field);
}

function partText(part: Value, field: string): string {
  if (part.kind.case !== "structValue") throw DomainError.ofField(field, "must be an object");
  const { type, text } = part.kind.value.fields;
  if (type?.kind.case !== "stringValue" || type.kind.value !== "text") {
    throw DomainError.ofField(`${field}.type`, 'must be "text": other content is not supported');
  }
  if (text?.kind.case !== "stringValue") throw DomainError.ofField(`${field}.text`, "must be a string");
  return text.kind.value;
}

function bounded(text: string, field: string): string {
  if (hasMoreCharacters(text, MAX_CHARACTERS)) {
    throw DomainError.ofField(field, tooLong(MAX_CHARACTERS));
  }
  return text;
}

/**
 * Characters are code points: a string has between half as many characters as UTF-16 code units, and as many.
 */
function hasMoreCharacters(text: string, max: number): boolean {
  if (text.length <= max || text.length > 2 * max) return text.length > max;
  let pairs = 0;
  for (let i = 0; i < text.length; i++) if ((text.charCodeAt(i) & 0xfc00) === 0xd800) pairs++;
  return text.length - pairs > max;
}

/** The message also names the value that would be accepted. */
export function unsupported(field: string, harmless?: string): DomainError {
  const except = harmless === undefined ? "" : ` except for ${harmless}`;
  return DomainError.ofField(field, `is not supported${except}`);
}

export function isNothing(value: Value | undefined): boolean {
  return value === undefined || value.kind.case === "nullValue";
}

export function isEmptyList(value: Value | undefined): boolean {
  if (value?.kind.case === "listValue") return value.kind.value.values.length === 0;
  return isNothing(value);
}
