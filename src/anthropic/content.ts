import type { MessageParam } from "../../gen/vx/anthropic/v1/messages_pb.js";
import { DomainError } from "../domain/errors.ts";
import { imageOfBase64, imageOfUrl } from "../domain/image.ts";
import { isJsonLonger, type JsonObject, type JsonValue } from "../domain/json.ts";
import { type ContentPart, MAX_MESSAGE_CHARACTERS, type PromptMessage, type Reasoning, type ToolCall } from "../domain/prompt.ts";
import { choiceAt, listAt, memberOf, objectAt, optionalBooleanAt, optionalTextAt, textAt } from "../rules/untyped-members.ts";
import { jsonOf } from "../rules/untyped-values.ts";

const MAX_BLOCKS = 1_000;
/** Cache controls are sent to upstreams unchanged. Neither the hold nor the text limits count them. */
const MAX_CACHE_CONTROL_CHARACTERS = 1_000;

/** Converts one of Anthropic's messages to messages of the common model: each tool result becomes a message. */
export function appendMessages(messages: PromptMessage[], param: MessageParam, field: string): void {
  const content = contentOf(param, `${field}.content`);
  if (typeof content === "string")
    messages.push({ role: choiceAt(param.role, "role", ["user", "assistant", "system"]), content });
  else if (param.role === "system") messages.push({ role: "system", content: textBlocks(content, `${field}.content`) });
  else if (param.role === "assistant") messages.push(assistantMessage(content, `${field}.content`));
  else appendUserMessages(messages, content, `${field}.content`);
}

export function systemMessageOf(system: JsonValue | undefined): PromptMessage | undefined {
  if (system === undefined || system === null) return undefined;
  if (typeof system === "string") return { role: "system", content: system };
  const blocks = listAt(system, "system", MAX_BLOCKS);
  if (blocks.length === 0) return undefined;
  const objects = blocks.map((block, i) => objectAt(block, `system[${i}]`));
  return { role: "system", content: textBlocks(objects, "system") };
}

export function cacheControlOf(value: JsonValue | undefined, field: string) {
  if (value === undefined) return {};
  const cacheControl = objectAt(value, `${field}.cache_control`);
  if (isJsonLonger(cacheControl, MAX_CACHE_CONTROL_CHARACTERS)) {
    const description = `must be at most ${MAX_CACHE_CONTROL_CHARACTERS} characters of JSON`;
    throw DomainError.ofField(`${field}.cache_control`, description);
  }
  return { cacheControl };
}

function contentOf({ content }: MessageParam, field: string): string | readonly JsonObject[] {
  const json = content && jsonOf(content);
  if (typeof json === "string") return json;
  const blocks = listAt(json, field, MAX_BLOCKS);
  if (blocks.length === 0) throw DomainError.ofField(field, "must have at least 1 block");
  return blocks.map((block, i) => objectAt(block, `${field}[${i}]`));
}

function assistantMessage(blocks: readonly JsonObject[], field: string): PromptMessage {
  refuseLongInputs(blocks, field);
  const content: ContentPart[] = [];
  const toolCalls: ToolCall[] = [];
  const reasoning: Reasoning[] = [];
  for (const [i, block] of blocks.entries()) {
    const at = `${field}[${i}]`;
    switch (typeOf(block, at, ["text", "tool_use", "thinking", "redacted_thinking"])) {
      case "text":
        content.push(textBlock(block, at));
        break;
      case "tool_use":
        toolCalls.push(toolCallOf(block, at));
        break;
      case "thinking":
        reasoning.push({
          text: textAt(block.thinking, `${at}.thinking`),
          signature: optionalTextAt(block.signature, `${at}.signature`),
          encrypted: undefined,
        });
        break;
      case "redacted_thinking":
        reasoning.push({
          text: "",
          signature: undefined,
          encrypted: textAt(block.data, `${at}.data`),
        });
        break;
    }
  }
  return {
    role: "assistant",
    content: content.length === 0 ? "" : content,
    ...(toolCalls.length > 0 ? { toolCalls } : {}),
    ...(reasoning.length > 0 ? { reasoning } : {}),
  };
}

/** Writing a longer input as JSON text would block other calls. */
function refuseLongInputs(blocks: readonly JsonObject[], field: string): void {
  const inputs = blocks.flatMap((block) => memberOf(block, "input") ?? []);
  if (!isJsonLonger(inputs, MAX_MESSAGE_CHARACTERS)) return;
  throw DomainError.ofField(field, `must be at most ${MAX_MESSAGE_CHARACTERS} characters`);
}

/** Tool results come first, as in Anthropic's API; the other blocks are one message. */
function appendUserMessages(messages: PromptMessage[], blocks: readonly JsonObject[], field: string): void {
  const content: ContentPart[] = [];
  for (const [i, block] of blocks.entries()) {
    const at = `${field}[${i}]`;
    switch (typeOf(block, at, ["text", "image", "tool_result"])) {
      case "text":
        content.push(textBlock(block, at));
        break;
      case "image":
        content.push(imageBlock(block, at));
        break;
      case "tool_result":
        if (content.length > 0) throw DomainError.ofField(at, "must come before all other blocks");
        messages.push(toolResult(block, at));
        break;
    }
  }
  if (content.length > 0) messages.push({ role: "user", content });
}

function toolResult(block: JsonObject, at: string): PromptMessage {
  const isError = optionalBooleanAt(block.is_error, `${at}.is_error`) ?? false;
  return {
    role: "tool",
    toolCallId: textAt(block.tool_use_id, `${at}.tool_use_id`),
    content: resultContent(memberOf(block, "content"), `${at}.content`),
    ...(isError ? { isError } : {}),
    ...cacheControlOf(memberOf(block, "cache_control"), at),
  };
}

function resultContent(content: JsonValue | undefined, field: string): PromptMessage["content"] {
  if (content === undefined) return "";
  if (typeof content === "string") return content;
  return listAt(content, field, MAX_BLOCKS).map((value, i) => {
    const at = `${field}[${i}]`;
    const block = objectAt(value, at);
    return typeOf(block, at, ["text", "image"]) === "text" ? textBlock(block, at) : imageBlock(block, at);
  });
}

function toolCallOf(block: JsonObject, at: string): ToolCall {
  return {
    id: textAt(block.id, `${at}.id`),
    name: textAt(block.name, `${at}.name`),
    arguments: JSON.stringify(objectAt(block.input, `${at}.input`)),
  };
}

function textBlocks(blocks: readonly JsonObject[], field: string): ContentPart[] {
  return blocks.map((block, i) => textBlock(block, `${field}[${i}]`));
}

function textBlock(block: JsonObject, at: string): ContentPart {
  typeOf(block, at, ["text"]);
  return {
    kind: "text",
    text: textAt(block.text, `${at}.text`),
    ...cacheControlOf(memberOf(block, "cache_control"), at),
  };
}

function imageBlock(block: JsonObject, at: string): ContentPart {
  const source = objectAt(block.source, `${at}.source`);
  const isUrl = typeOf(source, `${at}.source`, ["base64", "url"]) === "url";
  const image = isUrl
    ? imageOfUrl(textAt(source.url, `${at}.source.url`), `${at}.source.url`)
    : imageOfBase64(
        textAt(source.media_type, `${at}.source.media_type`),
        textAt(source.data, `${at}.source.data`),
        `${at}.source.data`,
      );
  return {
    kind: "image",
    image,
    detail: undefined,
    ...cacheControlOf(memberOf(block, "cache_control"), at),
  };
}

/** The type of a block. A type that this server does not support is refused by name. */
function typeOf<Type extends string>(block: JsonObject, at: string, types: readonly Type[]): Type {
  const type = textAt(block.type, `${at}.type`);
  const known = types.find((one) => one === type);
  if (known !== undefined) return known;
  const list = types.map((one) => `"${one}"`).join(", ");
  throw DomainError.ofField(`${at}.type`, `"${type.slice(0, 100)}" is not supported here; use ${list}`);
}
