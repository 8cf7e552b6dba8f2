import type { JsonValue } from "../../../domain/json.ts";
import type { FlatSchema } from "./flat-schema.ts";

type Bound = { readonly value: number; readonly isExclusive: boolean };

/** A number within the bounds of a schema, at or close to the lower one. */
export function numberFor(schema: FlatSchema, isInteger: boolean, variant: number): number {
  const lower = boundOf(schema.minimum, schema.exclusiveMinimum, Math.max);
  const upper = boundOf(schema.maximum, schema.exclusiveMaximum, Math.min);
  const multipleOf = Number(schema.multipleOf ?? 0);
  const isMultiple = multipleOf > 0;
  if (!isInteger && !isMultiple && lower && upper && (lower.isExclusive || upper.isExclusive)) {
    return (lower.value + upper.value) / 2;
  }
  // The multiple of an integer must be an integer.
  const step = isMultiple ? (isInteger && multipleOf % 1 !== 0 ? 1 : multipleOf) : 1;
  const start = lower?.value ?? Math.min(step, upper?.value ?? step);
  let steps = lower || isInteger || isMultiple ? Math.ceil(start / step) : start / step;
  if (lower && !isInteger && !isMultiple && !lower.isExclusive) steps = start / step;
  if (!lower && upper && steps * step > upper.value) steps = Math.floor(upper.value / step);
  if (lower?.isExclusive && steps * step <= lower.value) steps++;
  if (upper?.isExclusive && steps * step >= upper.value) steps--;
  const varied = (steps + variant) * step;
  const isBeyond = upper && (upper.isExclusive ? varied >= upper.value : varied > upper.value);
  const value = Number((isBeyond ? steps * step : varied).toPrecision(15));
  return Number.isFinite(value) ? value : 0;
}

/** An exclusive bound is a number, or in older drafts true beside the other one. */
function boundOf(
  inclusive: JsonValue | undefined,
  exclusive: JsonValue | undefined,
  tighter: (...values: number[]) => number,
): Bound | undefined {
  const value = typeof inclusive === "number" ? inclusive : undefined;
  if (typeof exclusive !== "number")
    return value === undefined ? undefined : { value, isExclusive: exclusive === true };
  if (value === undefined) return { value: exclusive, isExclusive: true };
  const bound = tighter(value, exclusive);
  return { value: bound, isExclusive: bound === exclusive };
}
