import { DomainError, type Reason } from "../domain/errors.ts";
import type { Model } from "../domain/model.ts";
import type { Micros } from "../domain/money.ts";
import type { HoldOutcome } from "../store/bill-item.ts";
import { checkRequest } from "./check-request.ts";
import { imageTokensOf } from "./context-window.ts";
import { fitHold } from "./fit-hold.ts";
import type { GenerationRequest } from "./generation-request.ts";
import type { Tokens } from "./token-counts.ts";

/** What a call would hold, and the reason why it would be refused. */
export type Quote = {
  readonly model: string;
  /** Counted, with the maximum of each image. */
  readonly inputTokens: number;
  readonly maxTokens: number;
  readonly holdMicros: Micros;
  readonly refusal: Reason | undefined;
};

/** The account that would pay, read for this quote. */
export type QuotePayer = {
  readonly key: { readonly accountId: string };
  readonly signal: AbortSignal;
  readonly funds: { readonly balanceMicros: Micros; readonly heldMicros: Micros };
};

/** Sizes the hold as a call does, but compares it with the funds instead of placing it. */
export async function quoteOf(
  model: Model,
  request: GenerationRequest,
  { key: { accountId }, signal, funds }: QuotePayer,
  tokens: Tokens,
): Promise<Quote> {
  await checkRequest(model, request);
  const promptTokens = await tokens.countPrompt(request, {
    signal,
    payer: accountId,
    maxTokens: model.contextWindow,
  });
  const inputTokens = promptTokens + imageTokensOf(model, request);
  const payer = { accountId, balanceMicros: funds.balanceMicros };
  const counted = { countPrompt: async () => promptTokens };
  const availableMicros = funds.balanceMicros - funds.heldMicros;
  try {
    const { held, size } = await fitHold(
      { model, request, payer, tokens: counted, signal },
      async ({ amountMicros }): Promise<HoldOutcome> =>
        amountMicros <= availableMicros ? { outcome: "held" } : { outcome: "insufficient", ...funds },
    );
    const refusal = held.outcome === "insufficient" ? "insufficient_balance" : undefined;
    return {
      model: model.id,
      inputTokens,
      maxTokens: size.maxTokens,
      holdMicros: size.amountMicros,
      refusal,
    };
  } catch (error) {
    if (!(error instanceof DomainError) || !QUOTED_REFUSALS.has(error.reason)) throw error;
    return { model: model.id, inputTokens, maxTokens: 0, holdMicros: 0n, refusal: error.reason };
  }
}

const QUOTED_REFUSALS: ReadonlySet<Reason> = new Set(["context_length_exceeded", "max_cost_too_low"]);
