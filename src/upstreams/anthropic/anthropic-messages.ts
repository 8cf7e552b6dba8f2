import type {
  CacheControl,
  ContentPart,
  Image,
  PromptMessage,
  Reasoning,
  ToolCall,
} from "../../domain/prompt.ts";
import { Base64Json, RawJson } from "../http/request-body.ts";
import { splitItemId } from "../item-id.ts";

type Block = { readonly type: string; readonly [name: string]: unknown };
type Content = string | readonly Block[];
type Turn = { readonly role: "user" | "assistant"; content: Content };

/** The API has a separate field for system messages, wherever they are in the conversation. */
export function systemOf(messages: readonly PromptMessage[]): Content | undefined {
  let system: Content | undefined;
  for (const message of messages) {
    if (message.role === "system" && hasContent(message)) system = joined(system, contentOf(message));
  }
  return system;
}

/**
 * Roles must alternate, so consecutive messages of one role become one message with several blocks. Results of tools
 * belong to the user's turn. The API refuses texts of only white space, so they are omitted.
 */
export function turnsOf(messages: readonly PromptMessage[]): readonly Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    if (message.role === "system" || !hasContent(message)) continue;
    const role = message.role === "assistant" ? "assistant" : "user";
    const content = contentOf(message);
    const last = turns.at(-1);
    if (last?.role === role) last.content = joined(last.content, content);
    else turns.push({ role, content });
  }
  return turns;
}

/** Whether anything of the message is sent. */
export function hasContent({ content, toolCalls, reasoning, toolCallId }: PromptMessage): boolean {
  if (toolCallId !== undefined || toolCalls || reasoning?.some(isOwnReasoning)) return true;
  if (typeof content === "string") return !isBlank(content);
  return content.some((part) => part.kind === "image" || !isBlank(part.text));
}

/** A longer text counts as content without a search: 32 MB of white space would take 50 ms. */
const MAX_BLANK_CHARACTERS = 512;

/** The API refuses blocks without any other character than white space. */
function isBlank(text: string): boolean {
  return text.length <= MAX_BLANK_CHARACTERS && !/\S/.test(text);
}

/** Whether the API can check that the reasoning is its own: it refuses reasoning of other servers. */
export function isOwnReasoning({ signature, encrypted }: Reasoning): boolean {
  if (!encrypted) return Boolean(signature);
  return !signature && splitItemId(encrypted).id === undefined;
}

function joined(before: Content | undefined, next: Content): Content {
  if (before === undefined) return next;
  const blocks = typeof before === "string" ? [textBlock(before)] : (before as Block[]);
  if (typeof next === "string") blocks.push(textBlock(next));
  else for (const block of next) blocks.push(block);
  return blocks;
}

function contentOf(message: PromptMessage): Content {
  const { content, toolCalls, reasoning, toolCallId } = message;
  if (toolCallId !== undefined) return [resultBlock(message, toolCallId)];
  if (typeof content === "string" && !toolCalls && !reasoning) return content;
  return [
    ...(reasoning ?? []).filter(isOwnReasoning).map(reasoningBlock),
    ...(typeof content === "string" ? textBlocks(content) : blocksOf(content)),
    ...(toolCalls ?? []).map(callBlock),
  ];
}

function blocksOf(parts: readonly ContentPart[]): Block[] {
  return parts.flatMap((part) =>
    part.kind === "text"
      ? textBlocks(part.text, part.cacheControl)
      : [imageBlock(part.image, part.cacheControl)],
  );
}

function textBlocks(text: string, cacheControl?: CacheControl): Block[] {
  return isBlank(text) ? [] : [textBlock(text, cacheControl)];
}

function textBlock(text: string, cacheControl?: CacheControl): Block {
  return { type: "text", text, cache_control: cacheControl };
}

function imageBlock(image: Image, cacheControl?: CacheControl): Block {
  const source =
    image.kind === "url"
      ? { type: "url", url: image.url }
      : { type: "base64", media_type: image.mediaType, data: new Base64Json("", image.base64) };
  return { type: "image", source, cache_control: cacheControl };
}

function reasoningBlock({ text, signature, encrypted }: Reasoning): Block {
  return encrypted
    ? { type: "redacted_thinking", data: encrypted }
    : { type: "thinking", thinking: text, signature };
}

function callBlock({ id, name, arguments: text }: ToolCall): Block {
  return { type: "tool_use", id, name, input: new RawJson(text) };
}

function resultBlock({ content, isError, cacheControl }: PromptMessage, id: string): Block {
  const blocks = typeof content === "string" ? textBlocks(content) : blocksOf(content);
  const isText = typeof content === "string" && blocks.length > 0;
  const result = isText ? content : blocks;
  return {
    type: "tool_result",
    tool_use_id: id,
    content: result.length === 0 ? undefined : result,
    is_error: isError,
    cache_control: cacheControl,
  };
}
