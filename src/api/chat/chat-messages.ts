import type { ChatMessage } from "../../../gen/vx/openai/v1/chat_pb.js";
import { MAX_CALLS, MAX_PARTS } from "../../domain/conversation.ts";
import { DomainError } from "../../domain/errors.ts";
import { imageOfUrl } from "../../domain/image.ts";
import type { JsonValue } from "../../domain/json.ts";
import type { ContentPart, PromptMessage, ToolCall } from "../../domain/prompt.ts";
import { callArgumentsOf, imageDetailOf, joinedTexts, requireType, shown } from "../openai-fields.ts";
import { jsonIn, refuseUnsupported, type UnsupportedField } from "../unsupported-fields.ts";
import { isAbsent, listAt, objectAt, optionalListAt, textAt } from "../untyped-members.ts";

/** Converts one of OpenAI's messages. The checks that all formats share are made later. */
export function promptMessageOfChat(message: ChatMessage, i: number): PromptMessage {
  const field = `messages[${i}]`;
  const { role, toolCallId, reasoningContent, functionCall, audio } = message;
  if (functionCall || audio) refuseUnsupported(message, unsupportedOf(field));
  const toolCalls = toolCallsOf(jsonIn(message.toolCalls), `${field}.tool_calls`);
  return {
    role: role === "developer" ? "system" : (role as PromptMessage["role"]),
    content: contentOf(message, toolCalls !== undefined, `${field}.content`),
    ...(toolCalls && { toolCalls }),
    ...(reasoningContent && {
      reasoning: [{ text: reasoningContent, signature: undefined, encrypted: undefined }],
    }),
    ...(toolCallId !== undefined && { toolCallId }),
  };
}

function unsupportedOf(field: string): readonly UnsupportedField<ChatMessage>[] {
  return [
    ["functionCall", `${field}.function_call`],
    ["audio", `${field}.audio`],
  ];
}

function toolCallsOf(calls: JsonValue | undefined, field: string): readonly ToolCall[] | undefined {
  const list = optionalListAt(calls, field, MAX_CALLS) ?? [];
  return list.length === 0 ? undefined : list.map((call, i) => toolCallOf(call, `${field}[${i}]`));
}

function toolCallOf(value: JsonValue, field: string): ToolCall {
  const call = objectAt(value, field);
  requireType(call, "function", field);
  const called = objectAt(call.function, `${field}.function`);
  return {
    id: textAt(call.id, `${field}.id`),
    name: textAt(called.name, `${field}.function.name`),
    arguments: callArgumentsOf(called.arguments, `${field}.function.arguments`),
  };
}

/** A refusal is the text of a message without content. */
function contentOf(message: ChatMessage, hasToolCalls: boolean, field: string): PromptMessage["content"] {
  const content = jsonIn(message.content);
  if (typeof content === "string") return content;
  if (isAbsent(content)) {
    if (message.refusal !== undefined) return message.refusal;
    if (hasToolCalls) return "";
    throw DomainError.ofField(field, "must be a string or a list of parts");
  }
  const parts = listAt(content, field, MAX_PARTS);
  if (parts.length === 0) throw DomainError.ofField(field, "must have at least one part");
  return joinedTexts(parts.map((part, i) => partOf(part, `${field}[${i}]`)));
}

function partOf(value: JsonValue, field: string): ContentPart {
  const part = objectAt(value, field);
  switch (part.type) {
    case "text":
      return { kind: "text", text: textAt(part.text, `${field}.text`) };
    case "refusal":
      return { kind: "text", text: textAt(part.refusal, `${field}.refusal`) };
    case "image_url": {
      const where = `${field}.image_url`;
      const { url, detail } = objectAt(part.image_url, where);
      return {
        kind: "image",
        image: imageOfUrl(textAt(url, `${where}.url`), `${where}.url`),
        detail: imageDetailOf(detail, `${where}.detail`),
      };
    }
    default:
      throw DomainError.ofField(
        `${field}.type`,
        `must be "text" or "image_url": ${shown(part.type)} is not supported`,
      );
  }
}
