import type { CountOptions } from "../domain/count-options.ts";
import { DomainError } from "../domain/errors.ts";
import { inputTokenBound } from "../domain/input-token-bound.ts";
import type { Model } from "../domain/model.ts";
import type { Micros } from "../domain/money.ts";
import { affordableOutput, costOf } from "../domain/price.ts";
import type { GenerationRequest } from "./generation-request.ts";
import type { Tokens } from "./token-counts.ts";

/** Minimum output limit of a call without max_tokens whose balance does not cover the model's default. */
const MIN_OUTPUT_TOKENS = 64;

/** The maximum usage of a generation, and its cost. */
export type Size = {
  /** Tokens of the messages alone. */
  readonly promptTokens: number;
  /** Whether promptTokens was counted; otherwise it is the upper bound given by the bytes. */
  readonly counted: boolean;
  /** promptTokens plus the tokens that the upstream's chat template may add. */
  readonly inputTokens: number;
  readonly maxTokens: number;
  /** The lowest value that maxTokens may be reduced to, to fit the balance. */
  readonly minTokens: number;
  readonly amountMicros: Micros;
};

type Payer = { readonly accountId: string; readonly balanceMicros: Micros };

/**
 * The bytes of the input are an upper bound of its tokens and are known already. Tokens are counted only if
 * that bound does not fit the window or the balance.
 */
export async function sizeOf(
  model: Model,
  request: GenerationRequest,
  { accountId: payer, balanceMicros }: Payer,
  tokens: Tokens,
  signal: AbortSignal,
): Promise<Size> {
  const bound = inputTokenBound(request.messages);
  const output = outputRange(model, request);
  if (bound + output.maxTokens <= model.contextWindow) {
    const size = sized(model, request, { promptTokens: bound, counted: false, ...output });
    if (size.amountMicros <= balanceMicros) return size;
  }
  return await countedSize(model, request, tokens, { signal, payer });
}

export async function countedSize(
  model: Model,
  request: GenerationRequest,
  tokens: Tokens,
  options: CountOptions,
): Promise<Size> {
  const promptTokens = await tokens.countPrompt(request.messages, {
    ...options,
    maxTokens: model.contextWindow,
  });
  const room = model.contextWindow - promptTokens;
  if (room <= 0) throw tooLong(model, promptTokens);
  const { maxTokens, minTokens } = outputRange(model, request);
  return sized(model, request, {
    promptTokens,
    counted: true,
    maxTokens: Math.min(maxTokens, room),
    minTokens: Math.min(minTokens, room),
  });
}

/** Lowers the output limit to what the funds cover, but not below minTokens. Never raises it. */
export function sizeWithin(model: Model, size: Size, availableMicros: Micros): Size {
  const { inputTokens, maxTokens: outputTokens, minTokens } = size;
  const affordable = affordableOutput(model, { inputTokens, outputTokens }, availableMicros);
  return withMaxTokens(model, size, Math.max(minTokens, affordable));
}

export function minSize(model: Model, size: Size): Size {
  return withMaxTokens(model, size, size.minTokens);
}

/** A limit that the caller set is lowered only to the model's maximum; the default may be lowered further. */
function outputRange(
  model: Model,
  { maxTokens: requested }: GenerationRequest,
): Pick<Size, "maxTokens" | "minTokens"> {
  const maxTokens = Math.min(requested ?? model.defaultOutputTokens, model.maxOutputTokens);
  return {
    maxTokens,
    minTokens: requested === undefined ? Math.min(MIN_OUTPUT_TOKENS, maxTokens) : maxTokens,
  };
}

function sized(
  model: Model,
  { messages }: GenerationRequest,
  size: Omit<Size, "inputTokens" | "amountMicros">,
): Size {
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
