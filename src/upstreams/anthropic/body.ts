import {
  type CacheControl,
  type ContentPart,
  type Image,
  NO_OPTIONS,
  type Prompt,
  type PromptMessage,
  type PromptOptions,
  type Reasoning,
  type ReasoningEffort,
  type Tool,
  type ToolCall,
  type ToolChoice,
} from "../../domain/prompt.ts";
import { extraFieldsOf, splitItemId } from "../dialect.ts";
import { Base64Json, RawJson } from "../http/request-body.ts";

/** The body of a request for a message. Members without a value are not sent. */
export function anthropicBody(prompt: Prompt, model: string): object {
  const { messages, maxTokens, stop, options } = prompt;
  return {
    ...extraFieldsOf(prompt, "anthropic-messages"),
    model,
    messages: turnsOf(messages),
    max_tokens: maxTokens,
    system: systemOf(messages),
    temperature: temperatureOf(prompt),
    stop_sequences: stop.length === 0 ? undefined : stop,
    ...(options === NO_OPTIONS ? undefined : fieldsOf(prompt, model)),
    stream: true,
  };
}

/** The API's maximum is 1, ours is 2: higher values become 1. The API refuses any value for a model that thinks. */
function temperatureOf({ temperature, options }: Prompt): number | undefined {
  const isThinking = options.reasoningEffort !== undefined && options.reasoningEffort !== "none";
  return temperature === undefined || isThinking ? undefined : Math.min(temperature, 1);
}

function fieldsOf(prompt: Prompt, model: string): object {
  const { topP, topK, responseFormat } = prompt.options;
  const { thinking, effort } = thinkingOf(prompt, model);
  const format = responseFormat?.kind === "json_schema" ? { type: "json_schema", schema: responseFormat.schema } : undefined;
  return {
    top_p: topP,
    top_k: topK,
    thinking,
    output_config: effort === undefined && !format ? undefined : { effort, format },
    ...toolFieldsOf(prompt.options),
  };
}

/** The API accepts a choice only together with tools. */
function toolFieldsOf({ tools = [], toolChoice, parallelToolCalls }: PromptOptions): object | undefined {
  if (tools.length === 0) return undefined;
  const choice = toolChoice && choiceOf(toolChoice);
  const isSingle = parallelToolCalls === false && toolChoice?.kind !== "none";
  return {
    tools: tools.map(toolOf),
    tool_choice: isSingle ? { type: "auto", ...choice, disable_parallel_tool_use: true } : choice,
  };
}

function toolOf({ name, description, parameters, strict, cacheControl }: Tool): object {
  // An unchanged object is not written to JSON again.
  const input_schema = parameters?.type === "object" ? parameters : { type: "object", ...parameters };
  return { name, description, input_schema, strict, cache_control: cacheControl };
}

function choiceOf(choice: ToolChoice): { readonly type: string; readonly name?: string } {
  switch (choice.kind) {
    case "auto":
    case "none":
      return { type: choice.kind };
    case "required":
      return { type: "any" };
    case "tool":
      return { type: "tool", name: choice.name };
  }
}

/**
 * Claude models from 4.6 on choose how long they think, and the later ones refuse a budget. Older ones, and other models on
 * servers with this API, accept only a budget.
 */
const ADAPTIVE_MODELS = /claude-(?!instant|[123]\b|[123][-.]|(?:opus|sonnet|haiku)-4(?!-[6-9](?!\d)))/i;

/** Limits of the API on a budget. */
const MIN_BUDGET = 1_024;
const MAX_BUDGET = 32_000;

/** The part of max_tokens that the model may think with. */
const BUDGET_SHARES = { minimal: 0.1, low: 0.2, medium: 0.5, high: 0.8 } as const;

/** The API has no lower effort than "low". */
const EFFORTS = { minimal: "low", low: "low", medium: "medium", high: "high" } as const;

type Thinking = { readonly thinking?: object; readonly effort?: string };

const UNSET: Thinking = {};

function thinkingOf({ options, maxTokens, messages }: Prompt, model: string): Thinking {
  const { reasoningEffort, reasoningBudgetTokens: wanted } = options;
  if (reasoningEffort === undefined) return UNSET;
  if (ADAPTIVE_MODELS.test(model)) return adaptive(reasoningEffort);
  if (reasoningEffort === "none" || maxTokens <= MIN_BUDGET || lacksReasoning(messages)) return UNSET;
  // The API requires a budget below max_tokens, which a hold can lower.
  const budget = Math.min(wanted ?? Math.floor(maxTokens * BUDGET_SHARES[reasoningEffort]), maxTokens - 1);
  return {
    thinking: { type: "enabled", budget_tokens: Math.min(Math.max(budget, MIN_BUDGET), MAX_BUDGET) },
  };
}

function adaptive(effort: ReasoningEffort): Thinking {
  if (effort === "none") return { thinking: { type: "disabled" } };
  return { thinking: { type: "adaptive" }, effort: EFFORTS[effort] };
}

/**
 * With a budget, the assistant message before the results of tools must begin with its reasoning. Clients of
 * other formats do not send it back.
 */
function lacksReasoning(messages: readonly PromptMessage[]): boolean {
  const last = messages.findLast(({ role }) => role !== "tool" && role !== "system");
  return last?.role === "assistant" && !last.reasoning?.some(isOwnReasoning);
}

type Block = { readonly type: string; readonly [name: string]: unknown };
type Content = string | readonly Block[];
type Turn = { readonly role: "user" | "assistant"; content: Content };

/** The API has a separate field for system messages, wherever they are in the conversation. */
function systemOf(messages: readonly PromptMessage[]): Content | undefined {
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
function isOwnReasoning({ signature, encrypted }: Reasoning): boolean {
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
    part.kind === "text" ? textBlocks(part.text, part.cacheControl) : [imageBlock(part.image, part.cacheControl)],
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
      : { type: "base64", media_type: image.mediaType, data: new Base64Json("", image.data) };
  return { type: "image", source, cache_control: cacheControl };
}

function reasoningBlock({ text, signature, encrypted }: Reasoning): Block {
  return encrypted ? { type: "redacted_thinking", data: encrypted } : { type: "thinking", thinking: text, signature };
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
