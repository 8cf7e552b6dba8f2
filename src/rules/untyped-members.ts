import type { Value } from "@bufbuild/protobuf/wkt";
import { DomainError } from "../domain/errors.ts";
import type { JsonObject, JsonValue } from "../domain/json.ts";
import { jsonOf } from "./untyped-values.ts";

/** Readers of untyped JSON in requests. Each of them throws a 400 that names the field if the value has another type. */

export function memberOf(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}

export function objectAt(value: JsonValue | undefined, field: string): JsonObject {
  if (!isObject(value)) throw mustBe(field, "an object");
  return value;
}

export function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !isList(value);
}

export function listAt(value: JsonValue | undefined, field: string, maxItems: number): readonly JsonValue[] {
  if (!isList(value)) throw mustBe(field, "a list");
  if (value.length > maxItems) throw DomainError.ofField(field, `must have at most ${maxItems} items`);
  return value;
}

export function optionalListAt(value: JsonValue | undefined, field: string, maxItems: number): readonly JsonValue[] | undefined {
  return isAbsent(value) ? undefined : listAt(value, field, maxItems);
}

export function textAt(value: JsonValue | undefined, field: string): string {
  if (typeof value !== "string") throw mustBe(field, "a string");
  return value;
}

export function optionalTextAt(value: JsonValue | undefined, field: string): string | undefined {
  return isAbsent(value) ? undefined : textAt(value, field);
}

export function optionalBooleanAt(value: JsonValue | undefined, field: string): boolean | undefined {
  if (isAbsent(value)) return undefined;
  if (typeof value !== "boolean") throw mustBe(field, "true or false");
  return value;
}

export function optionalNumberAt(value: JsonValue | undefined, field: string, min: number, max: number): number | undefined {
  if (isAbsent(value)) return undefined;
  if (typeof value !== "number" || value < min || value > max) {
    throw mustBe(field, `a number from ${min} to ${max}`);
  }
  return value;
}

export function optionalObjectAt(value: JsonValue | undefined, field: string): JsonObject | undefined {
  return isAbsent(value) ? undefined : objectAt(value, field);
}

export function choiceAt<Choice extends string>(value: JsonValue | undefined, field: string, choices: readonly Choice[]): Choice {
  const choice = choices.find((one) => one === value);
  if (choice === undefined) {
    throw mustBe(field, choices.map((one) => JSON.stringify(one)).join(" or "));
  }
  return choice;
}

/** Null counts as absent. */
export function isAbsent(value: JsonValue | undefined): value is null | undefined {
  return value === undefined || value === null;
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function mustBe(field: string, form: string): DomainError {
  return DomainError.ofField(field, `must be ${form}`);
}

export function jsonIn(value: Value | undefined): JsonValue | undefined {
  return value && jsonOf(value);
}

/** For errors: a value of the caller, shortened. */
export function shown(value: JsonValue | undefined): string {
  return typeof value === "string" ? `"${value.slice(0, 100)}"` : "any other value";
}
