import { DomainError } from "../domain/errors.ts";
import type { Model } from "../domain/model.ts";
import { formatMicros, type Micros } from "../domain/money.ts";
import { editDistance } from "../domain/text.ts";

/** The 402 error, with the balance, the amount held by running calls, and the amount the call needs. */
export function insufficientBalance(balance: Micros, held: Micros, required: Micros): DomainError {
  const passing = balance >= required;
  const need = `This call can cost up to ${formatMicros(required)}`;
  return new DomainError("insufficient_balance", {
    message: passing
      ? `${need}, which the balance of ${formatMicros(balance)} would cover, but running calls hold ${formatMicros(held)} of it. Try again when they have ended.`
      : `${need}, but the balance is ${formatMicros(balance)}. Top up the account, or lower max_tokens.`,
    metadata: {
      balance_micros: String(balance),
      held_micros: String(held),
      required_micros: String(required),
    },
    ...(passing ? { retryAfterSeconds: 1 } : {}),
  });
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
