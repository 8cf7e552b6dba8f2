import type { ContentPart, PromptMessage, Reasoning, ToolCall } from "../../domain/prompt.ts";
import { joinedTexts } from "../openai-fields.ts";

export type Conversation = {
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
export class ConversationBuilder {
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
