import { DomainError } from "../domain/errors.ts";
import { nextTurn } from "../domain/fairness.ts";
import { checkBase64 } from "../domain/image.ts";
import { jsonIfValid } from "../domain/json.ts";
import {
  type Format,
  isShortText,
  MAX_CALLS,
  MAX_ID_CHARACTERS,
  MAX_MESSAGE_CHARACTERS,
  MAX_PARTS,
  MAX_REASONING_BLOCKS,
  type PromptMessage,
  type ToolCall,
  textOfPart,
} from "../domain/prompt.ts";
import { hasMoreCharacters, unitsOf } from "../domain/text.ts";

const MAX_IMAGES = 100;
/** Nesting of arguments, the same as that of untyped fields. */
const MAX_ARGUMENT_LEVELS = 64;
/** Parsing this many characters takes a few milliseconds, or 15 for short lists; then the event loop runs other work. */
const SLICE_CHARACTERS = 131_072;

const STRING = /"[^"\\]*(?:\\.[^"\\]*)*"/g;

/** The messages of a request, and how its caller names them. */
export type Conversation = {
  readonly format: Format;
  readonly messages: readonly PromptMessage[];
  /** The field of each message; undefined if they are `messages[0]`, `messages[1]` and so on. */
  readonly fields?: readonly string[];
};

/** Checks what the messages contain and how they refer to each other. Returns the number of images. */
export async function checkConversation(conversation: Conversation): Promise<number> {
  const { messages } = conversation;
  let unanswered: Set<string> | undefined;
  const parsing = { characters: 0 };
  let images = 0;
  for (let i = 0; i < messages.length; i++) {
    const message = messages[i] as PromptMessage;
    if (isShortText(message)) {
      if (message.role === "assistant") unanswered = undefined;
      continue;
    }
    checkMembers(conversation, i);
    await checkLength(conversation, i);
    unanswered = unansweredAfter(conversation, i, unanswered);
    if (message.toolCalls) await checkArguments(conversation, i, parsing);
    images += await checkImages(conversation, i);
    if (images > MAX_IMAGES) {
      throw problem(conversation, i, contentMember(conversation, i), TOO_MANY_IMAGES);
    }
  }
  return images;
}

const TOO_MANY_IMAGES = `has image ${MAX_IMAGES + 1} of the request, and the maximum is ${MAX_IMAGES}`;

const NO_SUCH_CALL = "must be the id of a tool call of the last assistant message, and each call has at most one result";
const NOT_ARGUMENTS = `must have arguments that are the JSON text of an object with at most ${MAX_ARGUMENT_LEVELS} levels`;

/** Refuses members of other roles, and too many of them. */
function checkMembers(conversation: Conversation, i: number): void {
  const { role, content, toolCalls, reasoning, toolCallId } = conversation.messages[i] as PromptMessage;
  const refusal = (member: string, description: string) => problem(conversation, i, member, description);
  if (role !== "tool" && toolCallId !== undefined) throw refusal("tool_call_id", "requires the role tool");
  if (role !== "assistant" && toolCalls) throw refusal("tool_calls", "requires the role assistant");
  if (role !== "assistant" && reasoning) throw refusal("reasoning", "requires the role assistant");
  if (toolCalls && toolCalls.length > MAX_CALLS) throw refusal("tool_calls", atMost(MAX_CALLS));
  if (reasoning && reasoning.length > MAX_REASONING_BLOCKS) {
    throw refusal("reasoning", atMost(MAX_REASONING_BLOCKS));
  }
  if (typeof content === "string") return;
  if (content.length > MAX_PARTS) throw refusal(contentMember(conversation, i), atMost(MAX_PARTS));
  if (role !== "user" && role !== "tool" && content.some(({ kind }) => kind === "image")) {
    throw refusal(contentMember(conversation, i), "can contain images only with the role user or tool");
  }
}

async function checkLength(conversation: Conversation, i: number): Promise<void> {
  const { content, toolCalls = [], reasoning = [] } = conversation.messages[i] as PromptMessage;
  const texts = [
    ...(typeof content === "string" ? [content] : content.map(textOfPart)),
    ...toolCalls.flatMap((call) => [call.name, call.arguments]),
    ...reasoning.flatMap(({ text, signature = "", encrypted = "" }) => [text, signature, encrypted]),
  ];
  if (unitsOf(texts) <= MAX_MESSAGE_CHARACTERS) return;
  // Counting takes up to a millisecond for each message.
  await nextTurn();
  if (!hasMoreCharacters(texts, MAX_MESSAGE_CHARACTERS)) return;
  const together = texts.length > 1 ? ", all texts of the message together" : "";
  const description = `must be at most ${MAX_MESSAGE_CHARACTERS} characters${together}`;
  throw problem(conversation, i, contentMember(conversation, i), description);
}

/** The ids of tool calls that a later message can be the result of. */
function unansweredAfter(conversation: Conversation, i: number, unanswered: Set<string> | undefined): Set<string> | undefined {
  const { role, toolCalls, toolCallId = "" } = conversation.messages[i] as PromptMessage;
  if (role === "assistant") return toolCalls && idsOf(conversation, i, toolCalls);
  if (role !== "tool") return unanswered;
  if (!unanswered?.delete(toolCallId)) throw problem(conversation, i, "tool_call_id", NO_SUCH_CALL);
  return unanswered;
}

/** Ids must be unique in a message only: some models count from 0 in each reply. */
function idsOf(conversation: Conversation, i: number, toolCalls: readonly ToolCall[]): Set<string> {
  const ids = new Set<string>();
  for (const [j, { id, name }] of toolCalls.entries()) {
    const refusal = (description: string) => problem(conversation, i, `tool_calls[${j}]`, description);
    if (!isShort(id)) throw refusal(`must have an id of 1 to ${MAX_ID_CHARACTERS} characters`);
    if (!isShort(name)) throw refusal(`must have a name of 1 to ${MAX_ID_CHARACTERS} characters`);
    if (ids.has(id)) throw refusal("must not have the id of another call of the message");
    ids.add(id);
  }
  return ids;
}

async function checkArguments(conversation: Conversation, i: number, parsing: { characters: number }): Promise<void> {
  const { toolCalls = [] } = conversation.messages[i] as PromptMessage;
  for (const [j, { arguments: text }] of toolCalls.entries()) {
    parsing.characters += text.length;
    if (parsing.characters > SLICE_CHARACTERS) {
      parsing.characters = text.length;
      await nextTurn();
    }
    if (!isObjectText(text)) throw problem(conversation, i, `tool_calls[${j}]`, NOT_ARGUMENTS);
  }
}

function isShort(text: string): boolean {
  return text !== "" && text.length <= MAX_ID_CHARACTERS;
}

/** The value is not used, so wrong names do not matter: parseJson() takes ten times as long for some texts. */
function isObjectText(text: string): boolean {
  const value = jsonIfValid(text);
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject && isWithinLevels(text, MAX_ARGUMENT_LEVELS);
}

/** Whether objects and lists of a valid JSON text are nested at most `maxLevels` deep. */
function isWithinLevels(json: string, maxLevels: number): boolean {
  let levels = 0;
  for (const character of json.replace(STRING, "")) {
    if (character === "{" || character === "[") levels++;
    else if (character === "}" || character === "]") levels--;
    if (levels > maxLevels) return false;
  }
  return true;
}

/** Returns the number of images. */
async function checkImages(conversation: Conversation, i: number): Promise<number> {
  const { content } = conversation.messages[i] as PromptMessage;
  if (typeof content === "string") return 0;
  const member = contentMember(conversation, i);
  const field = (j: number) => conversation.fields?.[i] ?? `messages[${i}].${member}[${j}]`;
  let images = 0;
  for (const [j, part] of content.entries()) {
    if (part.kind !== "image") continue;
    images++;
    const data = part.image.kind === "data" && part.image.data;
    if (typeof data === "string") await checkBase64(data, field(j));
  }
  return images;
}

function contentMember({ format, messages }: Conversation, i: number): string {
  return format === "native" && typeof messages[i]?.content !== "string" ? "parts" : "content";
}

function atMost(max: number): string {
  return `must have at most ${max} items`;
}

function problem({ fields }: Conversation, i: number, member: string, description: string): DomainError {
  return DomainError.ofField(fields?.[i] ?? `messages[${i}].${member}`, description);
}
