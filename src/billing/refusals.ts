import { DomainError } from "../domain/errors.ts";
import { formatMicros, type Micros } from "../domain/money.ts";

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

export function unknownModel(id: string): DomainError {
  return new DomainError("model_not_found", {
    message: `There is no model "${id}".`,
    fields: [{ field: "model", description: `there is no model "${id}"` }],
  });
}
