import { DomainError, type Reason } from "../domain/errors.ts";
import { withPrefix } from "../domain/ids.ts";
import { InvariantViolation } from "../domain/invariant.ts";
import type { Model } from "../domain/model.ts";
import type { Micros } from "../domain/money.ts";
import type { AdmittedKey } from "../keys/admit.ts";
import type { HoldOutcome, HoldRequest, MinuteLimit, OwingHold, ShortHold } from "./bill-statement.ts";
import type { Billing, Settler } from "./billing.ts";
import { checkRequest } from "./check-request.ts";
import type { RunningGenerations } from "./generation.ts";
import type { Caller, GenerationRequest } from "./generation-request.ts";
import { boundedSize, imageTokensOf, needOf, nextSize, type Payer, type Size, type Tokens } from "./generation-size.ts";
import { insufficientBalance, limitExceeded, type Need, paymentReversed } from "./refusals.ts";

export const MAX_CALL_MS = 600_000;
/** A hold outlives the longest call plus its settlement retries. */
const HOLD_SECONDS = 720;

export type HoldDeps = {
  readonly billing: Billing;
  readonly settler: Settler;
  readonly running: RunningGenerations;
  readonly tokens: Tokens;
  /** Where customers add credit. */
  readonly topUpUrl: string | undefined;
  /** Reports a call that needs more than the balance, also without running calls. */
  readonly reportDepleted: (accountId: string, requiredMicros: Micros) => Promise<void>;
  /** Starts an automatic top-up if less than the threshold is free. */
  readonly topUpAfterRefusal: (accountId: string) => Promise<void>;
};

/** A generation whose hold is not placed yet. */
export type PendingGeneration = {
  readonly id: string;
  readonly caller: Caller;
  readonly request: GenerationRequest;
  readonly model: Model;
  readonly idempotency: HoldRequest["idempotency"];
};

/**
 * The size that the hold covers. There is no hold if an earlier call with the same idempotency key was answered, and none if the call
 * has to be admitted again.
 */
type Placed =
  | { readonly kind: "held"; readonly size: Size; readonly minuteLimits: readonly MinuteLimit[] }
  | { readonly kind: "answered" }
  | { readonly kind: "outdated" };

/** Tries sizes until one is held. Only the database decides, because a balance that was read earlier may be out of date. */
export async function placeHold(deps: HoldDeps, pending: PendingGeneration): Promise<Placed> {
  const { request, model, caller } = pending;
  const { key, signal } = caller;
  const { tokens } = deps;
  const options = { signal, accountId: key.accountId };
  const first = boundedSize(model, request, key, tokens, signal);
  let size = first instanceof Promise ? await first : first;
  for (;;) {
    const held = await tryHold(deps, pending, size);
    if (held.outcome === "owing") throw paymentReversed(held, needOf(model, request, size), deps.topUpUrl);
    if (!isShort(held)) return placedOf(held, size);
    const next = nextSize(model, request, size, held, tokens, options);
    if (next === undefined) {
      if (held.outcome === "insufficient") await afterRefusal(deps, key.accountId, held, size);
      throw refusalOf(held, needOf(model, request, size), deps.topUpUrl);
    }
    size = next instanceof Promise ? await next : next;
  }
}

/** A failure must not replace the refusal. */
async function afterRefusal(
  { reportDepleted, topUpAfterRefusal }: HoldDeps,
  accountId: string,
  { balanceMicros, heldMicros, autoTopUpBelowMicros }: Extract<ShortHold, { readonly outcome: "insufficient" }>,
  { amountMicros }: Size,
): Promise<void> {
  if (balanceMicros < amountMicros) await reportDepleted(accountId, amountMicros).catch(() => undefined);
  if (autoTopUpBelowMicros !== undefined && balanceMicros - heldMicros < autoTopUpBelowMicros)
    await topUpAfterRefusal(accountId).catch(() => undefined);
}

function tryHold(deps: HoldDeps, pending: PendingGeneration, size: Size): Promise<HoldOutcome> {
  const hold = holdRequestOf(pending, size);
  return deps.billing.hold(hold).catch((error: unknown) => {
    // The statement may have placed the hold although its reply was lost.
    if (mayBePlaced(error)) deps.running.waitFor(deps.settler.abandon(hold));
    throw error;
  });
}

function holdRequestOf(
  { id, caller: { key }, request, model, idempotency }: Omit<PendingGeneration, "caller"> & { caller: { key: HoldKey } },
  size: Size,
): HoldRequest {
  return {
    generationId: id,
    accountId: key.accountId,
    keyId: key.keyId,
    amountMicros: size.amountMicros,
    tokens: size.inputTokens + size.maxTokens,
    model: model.id,
    user: request.user,
    seconds: HOLD_SECONDS,
    admitted: key,
    idempotency,
  };
}

type HoldKey = Payer & HoldRequest["admitted"] & { readonly keyId: string };

function isShort(held: HoldOutcome): held is ShortHold {
  return held.outcome === "insufficient" || held.outcome === "limited";
}

function refusalOf(short: ShortHold, need: Need, topUpUrl: string | undefined): DomainError {
  return short.outcome === "limited" ? limitExceeded(short.limit, short, need) : insufficientBalance(short, need, topUpUrl);
}

function placedOf(held: Exclude<HoldOutcome, ShortHold | OwingHold>, size: Size): Placed {
  switch (held.outcome) {
    case "held":
      return { kind: "held", size, minuteLimits: held.minuteLimits ?? [] };
    case "answered":
    case "outdated":
      return { kind: held.outcome };
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

/** What a call would hold, and the reason why it would be refused. */
export type Quote = {
  readonly model: string;
  /** Counted, with the maximum of each image. */
  readonly inputTokens: number;
  readonly maxTokens: number;
  readonly holdMicros: Micros;
  readonly refusal: Reason | undefined;
  /** The limit that would refuse the call. */
  readonly limitId: string | undefined;
};

export type QuoteCaller = {
  readonly key: HoldKey & Pick<AdmittedKey, "models">;
  readonly signal: AbortSignal;
};

export type QuoteDeps = {
  readonly tokens: Pick<Tokens, "countPrompt">;
  readonly quoteHold: (hold: HoldRequest) => Promise<HoldOutcome>;
};

/** Sizes the hold as a call does, but asks the database what would happen instead of placing it. */
export async function quoteOf(
  model: Model,
  request: GenerationRequest,
  { key, signal }: QuoteCaller,
  { tokens, quoteHold }: QuoteDeps,
): Promise<Quote> {
  await checkRequest(model, request);
  const options = { signal, accountId: key.accountId };
  const promptTokens = await tokens.countPrompt(request, { ...options, maxTokens: model.contextWindow });
  const inputTokens = promptTokens + imageTokensOf(model, request);
  const counted = { countPrompt: async () => promptTokens };
  const pending = {
    id: withPrefix("gen", key.keyId),
    caller: { key },
    request,
    model,
    idempotency: undefined,
  };
  try {
    let size = await boundedSize(model, request, key, counted, signal);
    for (;;) {
      const held = await quoteHold(holdRequestOf(pending, size));
      const next = isShort(held) ? nextSize(model, request, size, held, counted, options) : undefined;
      if (next === undefined) {
        const refusal = quotedRefusal(held, needOf(model, request, size));
        const limitId = held.outcome === "limited" ? held.limit.id : undefined;
        const { maxTokens, amountMicros: holdMicros } = size;
        return { model: model.id, inputTokens, maxTokens, holdMicros, refusal, limitId };
      }
      size = await next;
    }
  } catch (error) {
    if (!(error instanceof DomainError) || !QUOTED_REFUSALS.has(error.reason)) throw error;
    const { reason: refusal } = error;
    return { model: model.id, inputTokens, maxTokens: 0, holdMicros: 0n, refusal, limitId: undefined };
  }
}

function quotedRefusal(held: HoldOutcome, need: Need): Reason | undefined {
  if (held.outcome === "owing") return "payment_reversed";
  return isShort(held) ? refusalOf(held, need, undefined).reason : undefined;
}

const QUOTED_REFUSALS: ReadonlySet<Reason> = new Set(["context_length_exceeded", "max_cost_too_low"]);
