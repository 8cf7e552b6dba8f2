import { DomainError } from "../../domain/errors.ts";
import { imageOfUrl } from "../../domain/image.ts";
import type { JsonObject, JsonValue } from "../../domain/json.ts";
import { type ContentPart, MAX_PARTS, type PromptMessage, type Reasoning, type ToolCall } from "../../domain/prompt.ts";
import { choiceAt, isAbsent, listAt, objectAt, shown, textAt } from "../../rules/untyped-members.ts";
import { callArgumentsOf, imageDetailOf, joinedTexts } from "../fields.ts";
import { reasoningOf } from "./items.ts";

const ROLES = ["user", "assistant", "system", "developer"] as const;

/** Converts the input, a text or a list of items, to messages. */
export function conversationOf(instructions: string | undefined, input: JsonValue | undefined): Conversation {
  const builder = new ConversationBuilder();
  if (instructions !== undefined) builder.message({ role: "system", content: instructions }, "instructions");
  if (typeof input === "string") {
    builder.message({ role: "user", content: input }, "input");
    return builder.build();
  }
  if (!Array.isArray(input) || input.length === 0) {
    throw DomainError.ofField("input", "must be a string or a list of at least one item");
  }
  for (const [i, item] of input.entries()) {
    const field = `input[${i}]`;
    readItem(objectAt(item, field), field, builder);
  }
  return builder.build();
}

function readItem(item: JsonObject, field: string, builder: ConversationBuilder): void {
  // Messages may leave out their type.
  switch (item.type ?? "message") {
    case "message":
      readMessage(item, field, builder);
      break;
    case "function_call":
      builder.toolCall(toolCallOf(item, field), field);
      break;
    case "function_call_output": {
      const content = joinedTexts(partsAt(item.output, `${field}.output`));
      builder.message({ role: "tool", content, toolCallId: callIdOf(item, field) }, field);
      break;
    }
    case "reasoning": {
      const block = reasoningOf(item, field);
      if (block) builder.reasoning(block, field);
      break;
    }
    case "item_reference":
      throw DomainError.ofField(`${field}.type`, `"item_reference" is not supported, ${SEND_ITEMS}`);
    default:
      throw DomainError.ofField(`${field}.type`, `${shown(item.type)} is not supported`);
  }
}

/** How to make clients send items instead of their ids. */
export const SEND_ITEMS =
  'because responses are not stored. Send the whole conversation in "input": in the AI SDK, set providerOptions.openai.store to false; in OpenAI\'s SDKs, set "store" to false and append the items of each response to "input"';

function toolCallOf(item: JsonObject, field: string): ToolCall {
  return {
    id: callIdOf(item, field),
    name: textAt(item.name, `${field}.name`),
    arguments: callArgumentsOf(item.arguments, `${field}.arguments`),
  };
}

function callIdOf({ call_id }: JsonObject, field: string): string {
  return textAt(call_id, `${field}.call_id`);
}

function readMessage(item: JsonObject, field: string, builder: ConversationBuilder): void {
  const role = choiceAt(item.role, `${field}.role`, ROLES);
  const parts = partsAt(item.content, `${field}.content`);
  if (role === "assistant") builder.assistantText(parts, field);
  else builder.message({ role: role === "developer" ? "system" : role, content: joinedTexts(parts) }, field);
}

function partsAt(value: JsonValue | undefined, field: string): readonly ContentPart[] {
  if (typeof value === "string") return [{ kind: "text", text: value }];
  return listAt(value, field, MAX_PARTS).map((part, i) => partOf(part, `${field}[${i}]`));
}

function partOf(value: JsonValue, field: string): ContentPart {
  const part = objectAt(value, field);
  switch (part.type) {
    case "input_text":
    case "output_text":
      return { kind: "text", text: textAt(part.text, `${field}.text`) };
    case "refusal":
      return { kind: "text", text: textAt(part.refusal, `${field}.refusal`) };
    case "input_image":
      return imagePartOf(part, field);
    default:
      throw DomainError.ofField(`${field}.type`, `${shown(part.type)} is not supported`);
  }
}

function imagePartOf({ image_url, file_id, detail }: JsonObject, field: string): ContentPart {
  if (!isAbsent(file_id)) throw DomainError.ofField(`${field}.file_id`, "is not supported: use image_url");
  const image = imageOfUrl(textAt(image_url, `${field}.image_url`), `${field}.image_url`);
  return { kind: "image", image, detail: imageDetailOf(detail, `${field}.detail`) };
}

type Conversation = {
  readonly messages: readonly PromptMessage[];
  /** The caller's field of each message. */
  readonly fields: readonly string[];
};

/** An assistant message that is assembled from its items. */
type OpenReply = {
  readonly field: string;
  readonly reasoning: Reasoning[];
  readonly content: ContentPart[];
  readonly toolCalls: ToolCall[];
};

/** Joins the items of one reply, such as reasoning and parallel function calls, to one assistant message. */
class ConversationBuilder {
  readonly #messages: PromptMessage[] = [];
  readonly #fields: string[] = [];
  #reply: OpenReply | undefined;

  message(message: PromptMessage, field: string): void {
    this.#endReply();
    this.#messages.push(message);
    this.#fields.push(field);
  }

  assistantText(parts: readonly ContentPart[], field: string): void {
    this.#endReplyOfText();
    this.#openReply(field).content.push(...parts);
  }

  reasoning(block: Reasoning, field: string): void {
    this.#endReplyOfText();
    this.#openReply(field).reasoning.push(block);
  }

  toolCall(call: ToolCall, field: string): void {
    this.#openReply(field).toolCalls.push(call);
  }

  build(): Conversation {
    this.#endReply();
    return { messages: this.#messages, fields: this.#fields };
  }

  #openReply(field: string): OpenReply {
    this.#reply ??= { field, reasoning: [], content: [], toolCalls: [] };
    return this.#reply;
  }

  /** Text or reasoning after a text starts the next reply, unless the current one already has tool calls. */
  #endReplyOfText(): void {
    const { content = [], toolCalls = [] } = this.#reply ?? {};
    if (content.length > 0 && toolCalls.length === 0) this.#endReply();
  }

  #endReply(): void {
    const reply = this.#reply;
    if (!reply) return;
    this.#reply = undefined;
    const { field, reasoning, content, toolCalls } = reply;
    this.#messages.push({
      role: "assistant",
      content: joinedTexts(content),
      ...(toolCalls.length > 0 && { toolCalls }),
      ...(reasoning.length > 0 && { reasoning }),
    });
    this.#fields.push(field);
  }
}
