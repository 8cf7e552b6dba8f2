import type { CountOptions } from "../domain/count-options.ts";
import { DomainError } from "../domain/errors.ts";
import { inputTokenBound } from "../domain/input-token-bound.ts";
import type { Model } from "../domain/model.ts";
import type { Micros } from "../domain/money.ts";
import { costOf } from "../domain/price.ts";
import type { Ask } from "./ask.ts";
import type { Tokens } from "./tokens.ts";

/** The most a generation can use, and what that costs. */
export type Size = {
  readonly inputTokens: number;
  readonly maxTokens: number;
  readonly amountMicros: Micros;
  /** Whether the input was counted, or only bounded by its bytes. */
  readonly counted: boolean;
};

type Payer = { readonly accountId: string; readonly balanceMicros: Micros };

/**
 * The bound of the input is its bytes, which costs nothing to know; only where that does not fit the window or the
 * balance are tokens counted.
 */
export async function sizeOf(
  model: Model,
  ask: Ask,
  { accountId: payer, balanceMicros }: Payer,
  tokens: Tokens,
  signal: AbortSignal,
): Promise<Size> {
  const wanted = wantedTokens(model, ask);
  const bound = inputTokenBound(ask.messages);
  if (bound + wanted <= model.contextWindow) {
    const size = sized(model, bound, wanted, false);
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
  const wanted = wantedTokens(model, ask);
  const counted = await tokens.countPrompt(ask.messages, { ...options, most: model.contextWindow });
  if (counted >= model.contextWindow) throw tooLong(model, counted);
  return sized(model, counted, Math.min(wanted, model.contextWindow - counted), true);
}

function wantedTokens(model: Model, { maxTokens }: Ask): number {
  return Math.min(maxTokens ?? model.maxOutputTokens, model.maxOutputTokens);
}

function sized(model: Model, inputTokens: number, maxTokens: number, counted: boolean): Size {
  const amountMicros = costOf(model, { inputTokens, outputTokens: maxTokens });
  return { inputTokens, maxTokens, amountMicros, counted };
}

function tooLong(model: Model, counted: number): DomainError {
  const description = `have at least ${counted} tokens, but the context window of "${model.id}" has ${model.contextWindow} for messages and reply`;
  return new DomainError("context_length_exceeded", {
    message: `messages: ${description}`,
    fields: [{ field: "messages", description }],
    metadata: { context_window: String(model.contextWindow), input_tokens: String(counted) },
  });
}
