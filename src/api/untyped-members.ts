import type { Value } from "@bufbuild/protobuf/wkt";
import { DomainError } from "../domain/errors.ts";
import type { JsonObject, JsonValue } from "../domain/json.ts";
import { jsonOf } from "../rules/plain-values.ts";

/** Readers of untyped JSON in requests. Each of them throws a 400 that names the field if the value has another type. */

/** A member of an object; undefined if it is missing or null. */
export function memberOf(object: JsonObject, name: string): JsonValue | undefined {
  return Object.hasOwn(object, name) ? (object[name] ?? undefined) : undefined;
}

export function objectAt(value: JsonValue | undefined, field: string): JsonObject {
  if (typeof value !== "object" || value === null || isList(value)) throw mustBe(field, "an object");
  return value;
}

/** A list of at most `maxItems`. */
export function listAt(value: JsonValue | undefined, field: string, maxItems: number): readonly JsonValue[] {
  if (!isList(value)) throw mustBe(field, "a list");
  if (value.length > maxItems) throw DomainError.ofField(field, `must have at most ${maxItems} items`);
  return value;
}

export function optionalListAt(
  value: JsonValue | undefined,
  field: string,
  maxItems: number,
): readonly JsonValue[] | undefined {
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

export function optionalNumberAt(
  value: JsonValue | undefined,
  field: string,
  min: number,
  max: number,
): number | undefined {
  if (isAbsent(value)) return undefined;
  if (typeof value !== "number" || value < min || value > max) {
    throw mustBe(field, `a number from ${min} to ${max}`);
  }
  return value;
}

export function optionalObjectAt(value: JsonValue | undefined, field: string): JsonObject | undefined {
  return isAbsent(value) ? undefined : objectAt(value, field);
}

/** One of the texts. */
export function choiceAt<Choice extends string>(
  value: JsonValue | undefined,
  field: string,
  choices: readonly Choice[],
): Choice {
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

/**
 * A field that is accepted only with a value that has no effect: its name in TypeScript and in JSON, the check of
 * the value, and its description for the caller.
 */
export type UnsupportedField<Request> = readonly [
  key: UntypedKey<Request>,
  name: string,
  isHarmless?: (value: JsonValue) => boolean,
  harmless?: string,
];

type UntypedKey<Request> = {
  [Key in keyof Request]-?: Request[Key] extends Value | undefined ? Key : never;
}[keyof Request];

/** Refuses fields that would change the reply; null counts as absent. */
export function refuseUnsupported<Request>(
  request: Request,
  fields: readonly UnsupportedField<Request>[],
  prefix = "",
): void {
  for (const [key, name, isHarmless, harmless] of fields) {
    const value = jsonIn(request[key] as Value | undefined);
    if (!isAbsent(value) && !isHarmless?.(value)) throw unsupported(`${prefix}${name}`, harmless);
  }
}

/** The same for a member of an untyped object: its name, the check of its value, and its description. */
export type UnsupportedMember = readonly [
  name: string,
  isHarmless?: (value: JsonValue) => boolean,
  harmless?: string,
];

export function refuseMembers(
  object: JsonObject,
  field: string,
  members: readonly UnsupportedMember[],
): void {
  for (const [name, isHarmless, harmless] of members) {
    const value = memberOf(object, name);
    if (value !== undefined && !isHarmless?.(value)) throw unsupported(`${field}.${name}`, harmless);
  }
}

/** The error also names the value that is accepted. */
export function unsupported(field: string, harmless?: string): DomainError {
  return DomainError.ofField(
    field,
    harmless === undefined ? "is not supported" : `only ${harmless} is supported`,
  );
}

/** The JSON of an untyped field. */
export function jsonIn(value: Value | undefined): JsonValue | undefined {
  return value && jsonOf(value);
}

/** A check for one of the values. */
export function isOneOf(...values: readonly JsonValue[]): (value: JsonValue) => boolean {
  return (value) => values.includes(value);
}

/** Whether a tool can be called only by the model, not by a program that a hosted tool runs. */
export function isDirectOnly(value: JsonValue): boolean {
  return Array.isArray(value) && value.every(isOneOf("direct"));
}

/** Whether a tool was called by the model itself. */
export function isDirectCaller(value: JsonValue): boolean {
  return typeof value === "object" && value !== null && "type" in value && value.type === "direct";
}

export function isEmptyList(value: JsonValue): boolean {
  return Array.isArray(value) && value.length === 0;
}

export function isEmptyObject(value: JsonValue): boolean {
  return (
    typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(value).length === 0
  );
}
