import type { CountOptions } from "../domain/count-options.ts";
import { DomainError } from "../domain/errors.ts";
import { inputTokenBound } from "../domain/input-token-bound.ts";
import type { Model } from "../domain/model.ts";
import type { Micros } from "../domain/money.ts";
import { affordableOutput, costOf } from "../domain/price.ts";
import type { Ask } from "./generation-request.ts";
import type { Tokens } from "./token-counts.ts";

/** A call without max_tokens gets at least so many where the balance does not cover the default of the model. */
const LEAST_OUTPUT_TOKENS = 64;

/** The most a generation can use, and what that costs. */
export type Size = {
  /** Of the messages alone. */
  readonly promptTokens: number;
  /** Whether these were counted, or only bounded by their bytes. */
  readonly counted: boolean;
  /** With what the chat template of the upstream may add. */
  readonly inputTokens: number;
  readonly maxTokens: number;
  /** How far maxTokens may be lowered to fit the balance. */
  readonly leastTokens: number;
  readonly amountMicros: Micros;
};

type Payer = { readonly accountId: string; readonly balanceMicros: Micros };

/**
 * The bound of the input is its bytes, which costs nothing to know. Tokens are counted only where the bound does not
 * fit the window or the balance.
 */
export async function sizeOf(
  model: Model,
  ask: Ask,
  { accountId: payer, balanceMicros }: Payer,
  tokens: Tokens,
  signal: AbortSignal,
): Promise<Size> {
  const bound = inputTokenBound(ask.messages);
  const output = outputRange(model, ask);
  if (bound + output.maxTokens <= model.contextWindow) {
    const size = sized(model, ask, { promptTokens: bound, counted: false, ...output });
    if (size.amountMicros <= balanceMicros) return size;
  }
  return await countedSize(model, ask, tokens, { signal, payer });
}

export async function countedSize(
  model: Model,
  ask: Ask,
  tokens: Tokens,
  options: CountOptions,
): Promise<Size> {
  const promptTokens = await tokens.countPrompt(ask.messages, { ...options, most: model.contextWindow });
  const room = model.contextWindow - promptTokens;
  if (room <= 0) throw tooLong(model, promptTokens);
  const { maxTokens, leastTokens } = outputRange(model, ask);
  return sized(model, ask, {
    promptTokens,
    counted: true,
    maxTokens: Math.min(maxTokens, room),
    leastTokens: Math.min(leastTokens, room),
  });
}

/**
 * The size with as many output tokens as the funds cover, never more than before; the least one if they do not cover
 * even that.
 */
export function sizeWithin(model: Model, size: Size, availableMicros: Micros): Size {
  const { inputTokens, maxTokens: outputTokens, leastTokens } = size;
  const affordable = affordableOutput(model, { inputTokens, outputTokens }, availableMicros);
  return withMaxTokens(model, size, Math.max(leastTokens, affordable));
}

export function leastSize(model: Model, size: Size): Size {
  return withMaxTokens(model, size, size.leastTokens);
}

/** A limit that the caller named is kept as far as the model allows; the default may be lowered. */
function outputRange(model: Model, { maxTokens: named }: Ask): Pick<Size, "maxTokens" | "leastTokens"> {
  const maxTokens = Math.min(named ?? model.defaultOutputTokens, model.maxOutputTokens);
  return {
    maxTokens,
    leastTokens: named === undefined ? Math.min(LEAST_OUTPUT_TOKENS, maxTokens) : maxTokens,
  };
}

function sized(model: Model, { messages }: Ask, size: Omit<Size, "inputTokens" | "amountMicros">): Size {
  const { base, perMessage } = model.promptOverheadTokens;
  const inputTokens = size.promptTokens + base + perMessage * messages.length;
  return withMaxTokens(model, { ...size, inputTokens, amountMicros: 0n }, size.maxTokens);
}

function withMaxTokens(model: Model, size: Size, maxTokens: number): Size {
  const amountMicros = costOf(model, { inputTokens: size.inputTokens, outputTokens: maxTokens });
  return { ...size, maxTokens, amountMicros };
}

function tooLong(model: Model, counted: number): DomainError {
  const description = `have at least ${counted} tokens, but the context window of "${model.id}" has ${model.contextWindow} for messages and reply`;
  return new DomainError("context_length_exceeded", {
    message: `messages: ${description}`,
    fields: [{ field: "messages", description }],
    metadata: { context_window: String(model.contextWindow), input_tokens: String(counted) },
  });
}
