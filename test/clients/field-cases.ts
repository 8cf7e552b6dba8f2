import { expect } from "vitest";
import type { TestApp } from "../support/app.ts";
import { bearer } from "../support/protocols.ts";

/** A value of a field, and what the server does with it. */
export type FieldCase<Value> = {
  readonly value: Value;
  /** The name that the 400 has; undefined if the field is accepted. */
  readonly refusedAs?: string;
};

/** Every field of a type of an SDK. The compiler reports fields that a new version adds. */
export type FieldCases<Type> = {
  readonly [Name in keyof Required<Type>]: FieldCase<NonNullable<Type[Name]>>;
};

/** The field is supported, or its documentation says that it is ignored because it does not change the reply. */
export function accepted<Value>(value: Value): FieldCase<Value> {
  return { value };
}

/** A 400 names the field, or the member of it with that name. */
export function refused<Value>(value: Value, member = ""): FieldCase<Value> {
  return { value, refusedAs: member };
}

type Row = readonly [field: string, body: object, refusedAs: string | undefined];

/** Each field on its own, added to an object that is valid without it. */
export function rowsOf(
  prefix: string,
  cases: object,
  base: object,
  bodyOf: (object: object) => object = (object) => object,
): readonly Row[] {
  return Object.entries(cases as Record<string, FieldCase<unknown>>).map(([name, { value, refusedAs }]) => [
    `${prefix}${name}`,
    bodyOf({ ...base, [name]: value }),
    refusedAs === undefined ? undefined : `${prefix}${name}${refusedAs}`,
  ]);
}

/** Whether each kind of a union is supported. The others are refused by the name of their type. */
export type Kinds<Kind extends string> = Readonly<Record<Kind, boolean>>;

export function refusedKinds(
  kinds: Readonly<Record<string, boolean>>,
  field: string,
  bodyOf: (value: object) => object,
): readonly Row[] {
  const refusedOnes = Object.keys(kinds).filter((kind) => !kinds[kind]);
  return refusedOnes.map((type) => [`${field} ${type}`, bodyOf({ type }), field]);
}

export async function expectHandled(
  app: TestApp,
  secret: string,
  path: string,
  [, body, refusedAs]: Row,
): Promise<void> {
  const response = await fetch(app.url + path, {
    method: "POST",
    headers: { ...bearer(secret), "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  expect(response.status, text.slice(0, 500)).toBe(refusedAs === undefined ? 200 : 400);
  if (refusedAs !== undefined) expect(JSON.parse(text)).toHaveProperty("error.param", refusedAs);
  // The tables of the server have every member of the SDK.
  expect(response.headers.get("x-vx-ignored")).toBeNull();
}
