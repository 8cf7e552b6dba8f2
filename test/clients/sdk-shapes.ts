import { expect } from "vitest";

/** The kind of a JSON value. */
type Kind<Value> = Value extends string
  ? "string"
  : Value extends number
    ? "number"
    : Value extends boolean
      ? "boolean"
      : Value extends null
        ? "null"
        : Value extends readonly unknown[]
          ? "list"
          : "object";

type Required<Type> = {
  [Name in keyof Type]-?: object extends Pick<Type, Name> ? never : Name;
}[keyof Type];

/** The kind of each member that a type of an SDK requires. The compiler reports members that a new version adds. */
export type Shape<Type> = { readonly [Name in Required<Type>]: Kind<Type[Name]> };

export function expectShape(value: unknown, shape: Readonly<Record<string, string>>): void {
  const members = value as Readonly<Record<string, unknown>>;
  const kinds = Object.keys(shape).map((name) => [name, kindOf(members[name])]);
  expect(Object.fromEntries(kinds)).toEqual(shape);
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  return Array.isArray(value) ? "list" : typeof value;
}
