import type {
  ContentPart as ContentPartMessage,
  Image as ImageMessage,
  Message,
  Reasoning as ReasoningMessage,
} from "../../../gen/vx/v1/generate_pb.js";
import { DomainError } from "../../domain/errors.ts";
import { imageOfBytes, imageOfUrl } from "../../domain/image.ts";
import type { ContentPart, Image, ImageDetail, PromptMessage, Reasoning } from "../../domain/prompt.ts";

/**
 * Copies the fields, because a protobuf message has members that upstreams do not accept, such as $typeName. The
 * rules of the .proto limit roles and details.
 */
export function promptMessagesOf(messages: readonly Message[]): PromptMessage[] | Promise<PromptMessage[]> {
  return messages.every(isTextAlone) ? messages.map(textMessageOf) : messagesWithParts(messages);
}

async function messagesWithParts(messages: readonly Message[]): Promise<PromptMessage[]> {
  const prompt: PromptMessage[] = [];
  for (const [i, message] of messages.entries()) {
    if (isTextAlone(message)) prompt.push(textMessageOf(message));
    else prompt.push({ role: roleOf(message), ...(await membersOf(message, `messages[${i}]`)) });
  }
  return prompt;
}

function isTextAlone({ content, parts, toolCallId, toolCalls, reasoning }: Message): boolean {
  return (
    content !== undefined &&
    parts.length === 0 &&
    toolCallId === "" &&
    toolCalls.length === 0 &&
    reasoning.length === 0
  );
}

function textMessageOf(message: Message): PromptMessage {
  return { role: roleOf(message), content: message.content ?? "" };
}

function roleOf({ role }: Message): PromptMessage["role"] {
  return role as PromptMessage["role"];
}

async function membersOf(message: Message, field: string): Promise<Omit<PromptMessage, "role">> {
  const { content, parts, toolCallId, toolCalls, reasoning } = message;
  if (content !== undefined && parts.length > 0) {
    throw DomainError.ofField(`${field}.parts`, "must not be set together with content");
  }
  if (content === undefined && parts.length === 0 && toolCalls.length === 0 && toolCallId === "") {
    throw DomainError.ofField(`${field}.content`, "is required without parts, tool_calls or tool_call_id");
  }
  return {
    content: parts.length > 0 ? await contentOf(parts, `${field}.parts`) : (content ?? ""),
    ...(toolCallId === "" ? {} : { toolCallId }),
    ...(toolCalls.length === 0
      ? {}
      : { toolCalls: toolCalls.map(({ id, name, arguments: text }) => ({ id, name, arguments: text })) }),
    ...(reasoning.length === 0 ? {} : { reasoning: reasoning.map(reasoningOf) }),
  };
}

async function contentOf(parts: readonly ContentPartMessage[], field: string): Promise<ContentPart[]> {
  const content: ContentPart[] = [];
  for (const [i, part] of parts.entries()) content.push(await partOf(part, `${field}[${i}]`));
  return content;
}

async function partOf({ text, image }: ContentPartMessage, field: string): Promise<ContentPart> {
  if (image && text === undefined) {
    const detail = image.detail as ImageDetail | undefined;
    return { kind: "image", image: await imageOf(image, `${field}.image`), detail };
  }
  if (image || text === undefined) throw DomainError.ofField(field, "must have either text or image");
  return { kind: "text", text };
}

async function imageOf({ url, data, mediaType }: ImageMessage, field: string): Promise<Image> {
  if (data && url === undefined) return await imageOfBytes(mediaType ?? "", data, `${field}.data`);
  if (data || url === undefined) throw DomainError.ofField(field, "must have either url or data");
  if (mediaType !== undefined) throw DomainError.ofField(`${field}.media_type`, "requires data");
  return imageOfUrl(url, `${field}.url`);
}

function reasoningOf({ text, signature, encrypted }: ReasoningMessage): Reasoning {
  return {
    text,
    signature: signature === "" ? undefined : signature,
    encrypted: encrypted === "" ? undefined : encrypted,
  };
}
