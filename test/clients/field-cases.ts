import { expect } from "vitest";
import { reply } from "../support/fake-upstreams/behaviours.ts";
import type { FakeUpstream } from "../support/fake-upstreams/fake-upstream.ts";
import type { TestKey } from "../support/fixtures.ts";
import type { Metered } from "../support/metered.ts";
import { bearer } from "../support/protocols.ts";

/** Where the value of an accepted field shows. */
type Effect =
  /** In what the upstream gets, or in the ledger. */
  | "used"
  /** Only in the reply. */
  | "shown"
  /** Nowhere: its documentation says so, or it has this value by default. */
  | "ignored";

/** A value of a field, and what the server does with it. */
export type FieldCase<Value> = {
  readonly value: Value;
  readonly effect?: Effect;
  /** The name that the 400 has; undefined if the field is accepted. */
  readonly refusedAs?: string;
};

/** Every field of a type of an SDK. The compiler reports fields that a new version adds. */
export type FieldCases<Type> = {
  readonly [Name in keyof Required<Type>]: FieldCase<NonNullable<Type[Name]>>;
};

export function used<Value>(value: Value): FieldCase<Value> {
  return { value, effect: "used" };
}

export function shown<Value>(value: Value): FieldCase<Value> {
  return { value, effect: "shown" };
}

export function ignored<Value>(value: Value): FieldCase<Value> {
  return { value, effect: "ignored" };
}

/** A 400 names the field, or the member of it with that name. */
export function refused<Value>(value: Value, member = ""): FieldCase<Value> {
  return { value, refusedAs: member };
}

type Row = readonly [
  field: string,
  body: object,
  refusedAs: string | undefined,
  without: object | undefined,
  effect: Effect | undefined,
];

/** Each field on its own, added to an object that is valid without it, or left out of one that has it. */
export function rowsOf(
  prefix: string,
  cases: object,
  base: object,
  bodyOf: (object: object) => object = (object) => object,
): readonly Row[] {
  return Object.entries(cases as Record<string, FieldCase<unknown>>).map(([name, one]) => {
    const { [name]: inBase, ...without } = base as Record<string, unknown>;
    const isInBase = JSON.stringify(inBase) === JSON.stringify(one.value);
    return [
      `${prefix}${name}`,
      bodyOf({ ...base, [name]: one.value }),
      one.refusedAs === undefined ? undefined : `${prefix}${name}${one.refusedAs}`,
      bodyOf(isInBase ? without : base),
      one.effect,
    ];
  });
}

type Words<Text extends string> = Text extends `${infer First} ${infer Rest}` ? First | Words<Rest> : Text;
type Checked<Kind, Named> = [Kind] extends [Named]
  ? [Named] extends [Kind]
    ? readonly string[]
    : { readonly unknown: Exclude<Named, Kind> }
  : { readonly missing: Exclude<Kind, Named> };

/** The refused kinds of a union, after the supported ones. The compiler reports kinds that a new version adds. */
export function kindsOf<Kind extends string>() {
  return <const Supported extends string, const Refused extends readonly string[]>(_supported: Supported, ...refused: Refused) =>
    refused.flatMap((text) => text.split(" ")) as never as Checked<Kind, Words<Supported | Refused[number]>>;
}

/** They are refused by the name of their type. */
export function refusedKinds(kinds: readonly string[], field: string, bodyOf: (value: object) => object): readonly Row[] {
  return kinds.map((type) => [`${field} ${type}`, bodyOf({ type }), field, undefined, undefined]);
}

type Server = Pick<Metered, "app"> & { readonly upstream?: FakeUpstream };
type Seen = { readonly status: number; readonly text: string; readonly used: string; readonly shown: string };

async function callOf({ app, upstream }: Server, key: TestKey, path: string, body: object): Promise<Seen> {
  const before = upstream?.calls.length;
  // Less than any of the calls holds, so that the charge does not depend on the length of the request.
  upstream?.always(reply({ usage: { input: 1, output: 1 } }));
  const response = await fetch(app.url + path, {
    method: "POST",
    headers: { ...bearer(key.secret), "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  // The tables of the server have every member of the SDK.
  expect(response.headers.get("x-vx-ignored")).toBeNull();
  const sent = upstream?.calls.slice(before).map((call) => call.body);
  const [charge] = await app.database.owner`
    SELECT user_id, model FROM vx.ledger WHERE account_id = ${key.accountId} ORDER BY seq DESC LIMIT 1`;
  const replied = text
    .replaceAll(/_[0-9a-hjkmnp-tv-z]{26}|"request_id":"\w+"/g, "")
    .replaceAll(/"(created|created_at|completed_at|balance_micros)":\d+/g, "")
    .replaceAll(/"obfuscation":"[^"]*"/g, '"obfuscation":""');
  return { status: response.status, text, used: JSON.stringify([sent, charge]), shown: replied };
}

const baseCalls = new Map<string, Seen>();

/** What a call without the field shows, which is the same each time. */
async function callWithout(...call: Parameters<typeof callOf>): Promise<Seen> {
  const name = JSON.stringify(call.slice(1));
  const known = baseCalls.get(name);
  if (known !== undefined) return known;
  const seen = await callOf(...call);
  expect(await callOf(...call)).toMatchObject({ used: seen.used, shown: seen.shown });
  baseCalls.set(name, seen);
  return seen;
}

export async function expectHandled(server: Server, key: TestKey, path: string, row: Row): Promise<void> {
  const [, body, refusedAs, without, effect] = row;
  const seen = await callOf(server, key, path, body);
  expect(seen.status, seen.text.slice(0, 500)).toBe(refusedAs === undefined ? 200 : 400);
  if (refusedAs !== undefined) {
    expect(JSON.parse(seen.text)).toHaveProperty("error.param", refusedAs);
    return;
  }
  const other = await callWithout(server, key, path, without ?? {});
  const found = seen.used !== other.used ? "used" : seen.shown !== other.shown ? "shown" : "ignored";
  expect(found).toBe(effect);
}
