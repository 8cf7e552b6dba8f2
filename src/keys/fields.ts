import type { Message, MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { KeyView } from "../../gen/sql/calls.ts";
import { type ApiKeySchema, type CreateKeyRequest, CreateKeyRequestSchema } from "../../gen/vx/v1/key_pb.js";
import type { Deps } from "../api/define-service.ts";
import { maskKey } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import { laneOfId } from "../domain/lane.ts";
import { readRange } from "../domain/network.ts";
import { fromScopeBits, isScope, toScopeBits } from "../domain/scope.ts";
import { limitsToSet } from "../limits/changes.ts";
import { limitsOfKey, type NewLimit, newLimitOf } from "../limits/store.ts";
import { viewLimit } from "../limits/views.ts";
import { dateOf } from "../rules/request-values.ts";

/** What requests to create and to change a key give in both APIs. */
export type KeyProperties = Omit<CreateKeyRequest, keyof Message>;
type PropertyName = keyof KeyProperties;

/** A value for the column of its name, and its text in the operator log. */
type Value = { readonly stored: unknown; readonly text: string | number };

/** The properties that change. Null clears one. */
type KeyValues = { readonly [Name in PropertyName]?: Value | null };

type ApiKeyInit = MessageInitShape<typeof ApiKeySchema>;
type FieldName = Exclude<keyof ApiKeyInit, keyof Message>;
type View<Name extends FieldName> = (row: KeyView) => ApiKeyInit[Name];

type Property<Name extends PropertyName & FieldName> = {
  readonly read: (given: NonNullable<KeyProperties[Name]>, deps: Deps, keyId: string) => Value;
  /** A property without a value in the operator log. Every key has a value of the others. */
  readonly none?: string;
  readonly view: View<Name>;
};

/** The order is that in error messages. */
const PROPERTIES: { readonly [Name in PropertyName]-?: Property<Name> } = {
  name: { read: (name) => ({ stored: name, text: name }), view: ({ name }) => name },
  scopes: {
    read: (names) => {
      const stored = toScopeBits(names.filter(isScope));
      return { stored, text: fromScopeBits(stored).join(",") };
    },
    view: ({ scopes }) => fromScopeBits(scopes),
  },
  rateLimitRpm: { read: (rpm) => ({ stored: rpm, text: rpm }), none: "default", view: ({ rpm }) => rpm },
  expiresAt: {
    read: (time) => {
      const text = dateOf("expires_at", time)?.toISOString() ?? "";
      return { stored: text, text };
    },
    none: "never",
    view: ({ expires_at: at }) => timeOf(at),
  },
  models: {
    read: (names, { catalog }) =>
      listOf(names, (name) => catalog.get(name)?.id ?? { problem: "is not the id or alias of a model" }, "models"),
    none: "all",
    view: ({ models }) => itemsOf(models),
  },
  allowedCidrs: {
    read: (texts) => {
      const rangeOf = (text: string) => {
        const read = readRange(text);
        return "problem" in read ? read : read.range;
      };
      return listOf(texts, rangeOf, "allowed_cidrs");
    },
    none: "all",
    view: ({ allowed_cidrs: ranges }) => itemsOf(ranges),
  },
  limits: {
    read: (limits, deps, keyId) => {
      const stored = limitsToSet(deps, limits).map((limit) => newLimitOf(limit, laneOfId(keyId), deps.ids));
      return { stored, text: textOfLimits(stored) };
    },
    none: "none",
    view: ({ id, limits }) => limitsOfKey(limits).map((limit) => viewLimit(limit, { kind: "key", id })),
  },
};

const OTHER_VIEWS: { readonly [Name in Exclude<FieldName, PropertyName>]-?: View<Name> } = {
  id: ({ id }) => id,
  maskedKey: (row) => maskKey(row.visible_start, row.visible_end),
  plan: ({ plan }) => plan,
  state: ({ state }) => state,
  createdAt: ({ created_at: at }) => timeOf(at),
  revokedAt: ({ revoked_at: at }) => timeOf(at),
  lastUsedAt: ({ last_used_at: at }) => timeOf(at),
  previousExpiresAt: ({ previous_expires_at: at }) => timeOf(at),
};

const NAMES = Object.keys(PROPERTIES) as PropertyName[];

const VIEWS = Object.entries({
  ...OTHER_VIEWS,
  ...Object.fromEntries(NAMES.map((name) => [name, PROPERTIES[name].view])),
});

export function viewKey(row: KeyView): ApiKeyInit {
  const values = VIEWS.map(([name, view]) => [name, view(row)] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== undefined));
}

/** The name of a property in the API, which is that of its column and of its detail in the operator log. */
function columnOf(name: string): string {
  return CreateKeyRequestSchema.field[name as PropertyName].name;
}

/** The properties that a request sets. */
export function keyValuesOf(deps: Deps, keyId: string, request: KeyProperties): KeyValues {
  return Object.fromEntries(
    NAMES.flatMap((name) => {
      const given = request[name];
      if (given === undefined || given === "" || (Array.isArray(given) && given.length === 0)) return [];
      const read = PROPERTIES[name].read as (given: unknown, deps: Deps, keyId: string) => Value;
      return [[name, read(given, deps, keyId)]];
    }),
  );
}

/** The properties in a mask, those that are not set cleared; without a mask, those that are set. */
export function keyChangesOf(deps: Deps, keyId: string, request: KeyProperties, mask?: readonly string[]): KeyValues {
  const values = keyValuesOf(deps, keyId, request);
  if (!mask) return values;
  const columns = NAMES.map(columnOf);
  if (!mask.every((path) => columns.includes(path)))
    throw DomainError.ofField("update_mask", `must have only these fields: ${columns.join(", ")}`);
  const named = NAMES.filter((name) => mask.includes(columnOf(name)));
  for (const name of named)
    if (!values[name] && PROPERTIES[name].none === undefined) throw DomainError.ofField(columnOf(name), "must not be empty");
  return Object.fromEntries(named.map((name) => [name, values[name] ?? null]));
}

/** Some columns of a key and their values, and its limits. */
export type KeyColumns = Readonly<Record<string, unknown>>;

export function columnsOf(values: KeyValues): KeyColumns {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [columnOf(name), value?.stored ?? null]));
}

/** The properties for the operator log. */
export function detailsOf(values: KeyValues): Readonly<Record<string, string | number | undefined>> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [columnOf(name), value ? value.text : PROPERTIES[name as PropertyName].none]),
  );
}

function timeOf(date: Date | null) {
  return date ? timestampFromDate(date) : undefined;
}

function itemsOf(text: string | null): string[] {
  return text?.split(",") ?? [];
}

/** The items in the form in which they are stored, once each. */
function listOf(items: readonly string[], read: (item: string) => string | { readonly problem: string }, field: string): Value {
  const stored = items.map((item, i) => {
    const value = read(item);
    if (typeof value === "object") throw DomainError.ofField(`${field}[${i}]`, value.problem);
    return value;
  });
  const distinct = [...new Set(stored)];
  return { stored: distinct, text: distinct.join(",") };
}

function textOfLimits(limits: readonly NewLimit[]): string {
  return limits
    .map(({ metric, period, model, per_user: perUser, amount, temporary_amount: temporary, ...limit }) =>
      [
        [metric, period, model, perUser ? "user" : ""].filter((part) => part !== "").join(" "),
        amount,
        temporary && `${temporary} until ${limit.temporary_until?.toISOString()}`,
      ]
        .filter((part) => part !== undefined)
        .join(": "),
    )
    .join("; ");
}
