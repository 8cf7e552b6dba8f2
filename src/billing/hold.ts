import { DomainError, type Reason } from "../domain/errors.ts";
import { assertInvariant, InvariantViolation } from "../domain/invariant.ts";
import type { Model } from "../domain/model.ts";
import type { Micros } from "../domain/money.ts";
import { maxCostOf } from "../domain/price.ts";
import type { HoldOutcome, HoldRequest } from "../store/bill.ts";
import type { Billing } from "../store/billing.ts";
import { checkRequest } from "./check-request.ts";
import type { Caller, GenerationRequest } from "./generation-request.ts";
import {
  boundedSize,
  countedSize,
  extentOf,
  imageTokensOf,
  type Payer,
  type Size,
  shrunkTo,
  smallest,
  type Tokens,
} from "./generation-size.ts";
import { insufficientBalance } from "./refusals.ts";
import type { RunningGenerations } from "./running-generations.ts";
import type { Settler } from "./settler.ts";

export const MAX_CALL_MS = 600_000;
/** A hold outlives the longest call plus its settlement retries. */
const HOLD_SECONDS = 720;

export type HoldDeps = {
  readonly billing: Billing;
  readonly settler: Settler;
  readonly running: RunningGenerations;
  readonly tokens: Tokens;
};

/** A generation whose hold is not placed yet. */
export type PendingGeneration = {
  readonly id: string;
  readonly caller: Caller;
  readonly request: GenerationRequest;
  readonly model: Model;
  readonly idempotency: HoldRequest["idempotency"];
};

/** The size that the hold covers. There is no hold if an earlier call with the same idempotency key was answered. */
type Placed = { readonly kind: "held"; readonly size: Size } | { readonly kind: "answered" };

export function placeHold(deps: HoldDeps, pending: PendingGeneration): Promise<Placed> {
  const { request, model } = pending;
  const { key, signal } = pending.caller;
  const { tokens } = deps;
  const placing = fitHold({ model, request, payer: key, tokens, signal }, (size) =>
    tryHold(deps, pending, size),
  );
  return placing.then(placedOf);
}

function tryHold(deps: HoldDeps, pending: PendingGeneration, size: Size): Promise<HoldOutcome> {
  const { key } = pending.caller;
  const { amountMicros } = size;
  const extent = extentOf(size);
  assertInvariant(
    amountMicros === maxCostOf(pending.model.prices, extent),
    "the amount of a hold is the maximum cost of its size",
    () => ({ generation: pending.id, amountMicros, ...extent }),
  );
  const hold: HoldRequest = {
    holdId: pending.id,
    accountId: key.accountId,
    keyId: key.keyId,
    amountMicros,
    seconds: HOLD_SECONDS,
    idempotency: pending.idempotency,
  };
  return deps.billing.hold(hold).catch((error: unknown) => {
    // The statement may have placed the hold although its reply was lost.
    if (mayBePlaced(error)) deps.running.waitFor(deps.settler.abandon(hold));
    throw error;
  });
}

function placedOf({ held, size }: { readonly held: HoldOutcome; readonly size: Size }): Placed {
  switch (held.outcome) {
    case "held":
      return { kind: "held", size };
    case "answered":
      return { kind: "answered" };
    case "insufficient":
      throw insufficientBalance(held.balanceMicros, held.heldMicros, size.amountMicros);
    case "revoked":
      throw new DomainError("revoked_api_key");
    case "running":
      throw new DomainError("idempotency_in_progress", { retryAfterSeconds: 1 });
    case "reused":
      throw new DomainError("idempotency_key_reused");
  }
}

/** After a violated invariant nothing more is done with the hold: the process ends, and then it is released. */
function mayBePlaced(error: unknown): boolean {
  if (error instanceof InvariantViolation) return false;
  return !(error instanceof DomainError && error.reason === "overloaded");
}

type HoldToFit = {
  readonly model: Model;
  readonly request: GenerationRequest;
  readonly payer: Payer;
  readonly tokens: Pick<Tokens, "countPrompt">;
  readonly signal: AbortSignal;
};

/**
 * Tries sizes until one is held. If the first does not fit the balance, the input is counted, then a default
 * output limit is lowered. Only `tryHold` decides, because a balance that was read earlier may be out of date.
 */
async function fitHold(
  { model, request, payer, tokens, signal }: HoldToFit,
  tryHold: (size: Size) => Promise<HoldOutcome>,
): Promise<{ readonly held: HoldOutcome; readonly size: Size }> {
  const first = boundedSize(model, request, payer, tokens, signal);
  let size = first instanceof Promise ? await first : first;
  let held = await tryHold(size);
  if (held.outcome === "insufficient" && !size.counted) {
    size = await countedSize(model, request, tokens, { signal, payer: payer.accountId });
    held = await tryHold(size);
  }
  // Another call may take the funds in between, so the last attempt uses the lowest limit.
  for (const lower of [shrunkTo, smallest]) {
    if (held.outcome !== "insufficient" || size.maxTokens === size.minTokens) break;
    const availableMicros = held.balanceMicros - held.heldMicros;
    size = lower(model, size, availableMicros);
    if (size.amountMicros <= availableMicros) held = await tryHold(size);
  }
  return { held, size };
}

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
