import { DomainError, type Reason } from "../domain/errors.ts";
import type { LimitMetric } from "../domain/limit.ts";
import type { Model } from "../domain/model.ts";
import { formatMicros, type Micros } from "../domain/money.ts";
import { editDistance } from "../domain/text.ts";
import type { AdmittedKey } from "../keys/admit.ts";
import type { Funds, OwingHold, RefusingLimit } from "./bill-statement.ts";

/** The wait for running calls to end. Official SDKs retry twice. */
const RUNNING_CALLS_SECONDS = 2;
/** Official SDKs ignore longer waits. */
const MAX_RETRY_SECONDS = 60;

/** What a hold needs that does not fit. */
export type Need = {
  readonly requiredMicros: Micros;
  /** The same with one token of output; undefined if the output limit is not the caller's choice. */
  readonly minimum: { readonly micros: Micros; readonly tokens: bigint } | undefined;
};

/** The 402 error of a call that the balance does not cover. */
export function insufficientBalance(funds: Funds, need: Need, topUpUrl: string | undefined): DomainError {
  const { balanceMicros, heldMicros } = funds;
  const { requiredMicros, minimum } = need;
  const cost = `This call can cost up to ${formatMicros(requiredMicros)}`;
  const metadata = {
    ...fundsMetadata(funds, need),
    ...(topUpUrl === undefined ? {} : { top_up_url: topUpUrl }),
  };
  if (balanceMicros >= requiredMicros) {
    return new DomainError("insufficient_balance", {
      message: `${cost}, which the balance of ${formatMicros(balanceMicros)} would cover, but running calls hold ${formatMicros(heldMicros)} of it. Try again when they have ended.`,
      metadata,
      retryAfterSeconds: RUNNING_CALLS_SECONDS,
      shouldRetry: true,
    });
  }
  const canLower = minimum !== undefined && minimum.micros <= balanceMicros - heldMicros;
  return new DomainError("insufficient_balance", {
    message: `${cost}, but the balance is ${formatMicros(balanceMicros)}. Top up the account${canLower ? ", or lower max_tokens" : ""}.`,
    metadata,
    shouldRetry: false,
  });
}

/** The 402 error of an account that owes an amount. A credit or a top-up pays this amount first. */
export function paymentReversed({ owedMicros, ...funds }: OwingHold, need: Need, topUpUrl: string | undefined): DomainError {
  return new DomainError("payment_reversed", {
    message: `A payment into the account was refunded or disputed after it was spent: ${formatMicros(owedMicros)} is owed. Top up the account.`,
    metadata: {
      ...fundsMetadata(funds, need),
      owed_micros: String(owedMicros),
      ...(topUpUrl === undefined ? {} : { top_up_url: topUpUrl }),
    },
  });
}

function fundsMetadata({ balanceMicros, heldMicros }: Funds, { requiredMicros }: Need) {
  const available = balanceMicros - heldMicros;
  return {
    balance_micros: String(balanceMicros),
    held_micros: String(heldMicros),
    available_micros: String(available),
    required_micros: String(requiredMicros),
    shortage_micros: String(requiredMicros > available ? requiredMicros - available : 0n),
  };
}

const LIMIT_REASONS = {
  cost: "budget_exceeded",
  tokens: "token_limit_exceeded",
  generations: "generation_limit_exceeded",
  concurrent: "concurrency_limit_reached",
} as const satisfies Record<LimitMetric, Reason>;

/** The error of a call that does not fit a limit. */
export function limitExceeded(limit: RefusingLimit, funds: Funds, need: Need): DomainError {
  const { metric, amount, spent, held, needed, reset } = limit;
  const [wait, advice] = waitOf(limit, canLowerTo(limit, funds, need));
  const used = metric === "concurrent" ? "" : `${amountText(metric, spent)} are used, `;
  const message = `${limitText(limit)} does not cover this call: it needs ${amountText(metric, needed)}, ${used}running calls hold ${amountText(metric, held)}. ${advice}`;
  return new DomainError(LIMIT_REASONS[metric], {
    message,
    metadata: {
      limit_id: limit.id,
      limit_owner: limit.ownerId,
      metric,
      window: limit.window,
      amount: String(amount),
      model: limit.model,
      per: limit.per,
      spent: String(spent),
      held: String(held),
      needed: String(needed),
      ...(reset ? { resets_at: reset.at.toISOString() } : {}),
      ...(metric === "cost" ? fundsMetadata(funds, need) : {}),
    },
    shouldRetry: wait !== undefined,
    ...(wait === undefined ? {} : { retryAfterSeconds: wait }),
  });
}

/** Whether the call fits the limit and the balance with a lower max_tokens. */
function canLowerTo({ metric, amount, spent, held }: RefusingLimit, funds: Funds, { minimum }: Need): boolean {
  if (minimum === undefined || minimum.micros > funds.balanceMicros - funds.heldMicros) return false;
  if (metric !== "cost" && metric !== "tokens") return false;
  return spent + held + minimum[metric === "cost" ? "micros" : "tokens"] <= amount;
}

/** The seconds after which a retry can succeed, if that is soon, and the advice for the caller. */
function waitOf({ metric, amount, spent, needed, reset }: RefusingLimit, canLower: boolean): [number | undefined, string] {
  if (needed > amount) {
    const advice = canLower ? "Lower max_tokens, or raise the limit." : "Raise the limit.";
    return [undefined, `The call alone needs more than the limit. ${advice}`];
  }
  if (metric === "concurrent") return [1, "Try again when one has ended."];
  if (spent + needed <= amount) return [RUNNING_CALLS_SECONDS, "Try again when they have ended."];
  if (!reset) return [undefined, "The limit does not reset. Raise it."];
  const seconds = Math.max(1, reset.seconds);
  const advice = `It resets at ${reset.at.toISOString()}.`;
  return [seconds <= MAX_RETRY_SECONDS ? seconds : undefined, advice];
}

function limitText({ metric, window, amount, model, per }: RefusingLimit): string {
  const period = window === "" ? "" : window === "total" ? " in total" : ` per ${window}`;
  const user = per === "user" ? " for each user" : "";
  const ofModel = model === "" ? "" : ` of "${model}"`;
  return `The limit of ${amountText(metric, amount)}${ofModel}${period}${user}`;
}

function amountText(metric: LimitMetric, amount: bigint): string {
  switch (metric) {
    case "cost":
      return formatMicros(amount);
    case "tokens":
      return `${amount} tokens`;
    case "generations":
      return `${amount} generations`;
    case "concurrent":
      return `${amount} running generations`;
  }
}

/** The 400 error of a call whose maximum cost does not cover its input and one token of output. */
export function maxCostTooLow(required: Micros, maxCost: Micros): DomainError {
  const description = `is ${formatMicros(maxCost)}, but the input and one token of output can cost ${formatMicros(required)}`;
  return new DomainError("max_cost_too_low", {
    message: `max_cost_micros: ${description}`,
    fields: [{ field: "max_cost_micros", description }],
    metadata: { max_cost_micros: String(maxCost), required_micros: String(required) },
  });
}

/** The 403 error of a call with a key that may not use the model. */
export function modelNotAllowed({ models = [] }: Pick<AdmittedKey, "models">, model: Model): DomainError {
  return new DomainError("model_not_allowed", {
    message: `The API key cannot use the model "${model.id}". It can use: ${models.join(", ")}.`,
  });
}

/** Bound the work for a model that does not exist to half a millisecond. */
const MAX_COMPARED_NAMES = 50;
const MAX_COMPARED_CHARACTERS = 40;
const MAX_NAMED_MODELS = 3;

export function unknownModel(id: string, models: readonly Model[] = []): DomainError {
  const near = nearestIds(id, models).map((name) => `"${name}"`);
  const hint = near.length > 0 ? ` Did you mean ${near.join(" or ")}?` : "";
  return new DomainError("model_not_found", {
    message: `There is no model "${id}".${hint} GET /v1/models lists the models.`,
    fields: [{ field: "model", description: `there is no model "${id}"` }],
  });
}

/** The ids of the models with the most similar ids or aliases; none if they have little in common. */
function nearestIds(name: string, models: readonly Model[]): string[] {
  if (name.length > MAX_COMPARED_CHARACTERS) return [];
  const wanted = name.toLowerCase();
  const maxDistance = Math.max(2, name.length / 3);
  const near = models
    .flatMap(({ id, aliases }) => [id, ...aliases].map((other) => ({ id, other })))
    .filter(({ other }) => Math.abs(other.length - name.length) <= maxDistance)
    .slice(0, MAX_COMPARED_NAMES)
    .map(({ id, other }) => ({ id, distance: editDistance(wanted, other.toLowerCase()) }))
    .filter(({ distance }) => distance <= maxDistance)
    .sort((one, other) => one.distance - other.distance);
  const best = near.filter(({ distance }) => distance <= (near[0]?.distance ?? 0) + 2);
  return [...new Set(best.map(({ id }) => id))].slice(0, MAX_NAMED_MODELS);
}
