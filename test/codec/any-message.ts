import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import fc, { type Arbitrary } from "fast-check";
import { isWrapper } from "../../src/codec/json/well-known.ts";

type Value = unknown;

const int32 = fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 });
const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n + 1n, 0n, -1n),
);
const uint64 = fc.oneof(fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }), fc.constant(2n ** 64n - 1n));
const text = fc.oneof(
  fc.string({ unit: "binary", maxLength: 8 }),
  fc.constantFrom("__proto__", "constructor", "\u2028", '"\\/\b', "\u0000"),
);

const SCALARS: Record<ScalarType, Arbitrary<Value>> = {
  [ScalarType.STRING]: text,
  [ScalarType.BYTES]: fc.uint8Array({ maxLength: 8 }).map((bytes) => new Uint8Array(bytes)),
  [ScalarType.BOOL]: fc.boolean(),
  [ScalarType.DOUBLE]: fc.double(),
  [ScalarType.FLOAT]: fc.float(),
  [ScalarType.INT32]: int32,
  [ScalarType.SINT32]: int32,
  [ScalarType.SFIXED32]: int32,
  [ScalarType.UINT32]: uint32,
  [ScalarType.FIXED32]: uint32,
  [ScalarType.INT64]: int64,
  [ScalarType.SINT64]: int64,
  [ScalarType.SFIXED64]: int64,
  [ScalarType.UINT64]: uint64,
  [ScalarType.FIXED64]: uint64,
};

const seconds = fc.bigInt({ min: -62_135_596_800n, max: 253_402_300_799n });
const nanos = fc.oneof(fc.constantFrom(0, 1, 1_000, 500_000_000), fc.integer({ min: 0, max: 999_999_999 }));
const json = fc
  .jsonValue({ maxDepth: 2 })
  // JSON.stringify loses the sign of zero.
  .map((value) => JSON.parse(JSON.stringify(value)) as unknown);

/** Well-known types have value limits that their descriptors do not express. */
const WELL_KNOWN: Record<string, Arbitrary<Record<string, Value>>> = {
  "google.protobuf.Timestamp": fc.record({ seconds, nanos }),
  "google.protobuf.Duration": fc
    .record({ seconds: fc.bigInt({ min: 0n, max: 315_576_000_000n }), nanos, negative: fc.boolean() })
    .map(({ seconds: whole, nanos: part, negative }) => {
      const rest = whole === 315_576_000_000n ? 0 : part;
      return negative && (whole > 0n || rest > 0)
        ? { seconds: -whole, nanos: rest === 0 ? 0 : -rest }
        : { seconds: whole, nanos: rest };
    }),
  "google.protobuf.FieldMask": fc.record({
    paths: fc.array(fc.constantFrom("a", "some_field", "a.b_c", "x1.y_z"), { maxLength: 3 }),
  }),
  "google.protobuf.Any": fc.constant({}),
};

/** An arbitrary message of the type, nested at most to the depth. */
export function anyMessage(desc: DescMessage, depth = 3): Arbitrary<Message> {
  const known = WELL_KNOWN[desc.typeName];
  if (known) return known.map((init) => create(desc, init as never));
  if (desc.typeName === "google.protobuf.Value") return json.map((value) => asValue(desc, value));
  const entries: Record<string, Arbitrary<Value>> = {};
  for (const member of desc.members) {
    if (member.kind === "field") {
      const value = anyField(member, depth);
      if (value) entries[member.localName] = canBeAbsent(member) ? maybe(value) : value;
    } else {
      const cases = member.fields.flatMap((field) => {
        const value = anyField(field, depth);
        return value ? [value.map((one) => ({ case: field.localName, value: one }))] : [];
      });
      entries[member.localName] = fc.oneof(fc.constant({ case: undefined }), ...(cases as Arbitrary<object>[]));
    }
  }
  return fc.record(entries).map((init) => {
    const message = create(desc);
    for (const [name, value] of Object.entries(init)) if (value !== undefined) Object.assign(message, { [name]: value });
    return message;
  });
}

function canBeAbsent(field: DescField): boolean {
  return field.presence === FeatureSet_FieldPresence.EXPLICIT && field.fieldKind !== "list" && field.fieldKind !== "map";
}

function maybe(value: Arbitrary<Value>): Arbitrary<Value> {
  return fc.option(value, { nil: undefined });
}

/** Undefined if the depth is reached. */
function anyField(field: DescField, depth: number): Arbitrary<Value> | undefined {
  switch (field.fieldKind) {
    case "list": {
      const item = anyElement(field, depth);
      return item && fc.array(item, { maxLength: 3 });
    }
    case "map": {
      const item = anyElement(field, depth);
      return item && fc.array(fc.tuple(SCALARS[field.mapKey], item), { maxLength: 3 }).map(toMap);
    }
    case "message":
      // Outside oneofs a wrapper is represented by its value.
      if (!field.oneof && isWrapper(field.message)) return SCALARS[field.message.fields[0]?.scalar as ScalarType];
      return anyElement(field, depth);
    default:
      return anyElement(field, depth);
  }
}

function anyElement(field: DescField, depth: number): Arbitrary<Value> | undefined {
  if (field.message) {
    if (field.message.typeName === "google.protobuf.Struct") return anyObject(field);
    return depth === 0 ? undefined : anyMessage(field.message, depth - 1);
  }
  if (field.enum) {
    const numbers = fc.constantFrom(...field.enum.values.map(({ number }) => number));
    return field.enum.open && field.enum.typeName !== "google.protobuf.NullValue" ? fc.oneof(numbers, int32) : numbers;
  }
  return SCALARS[field.scalar as ScalarType];
}

/** A Struct is represented by a plain object, except inside a google.protobuf.Value. */
function anyObject(field: DescField): Arbitrary<Value> {
  const object = fc.dictionary(text, json, { maxKeys: 3 });
  if (field.parent.typeName !== "google.protobuf.Value") return object;
  return object.map((fields) => structOf(field.message as DescMessage, fields));
}

function structOf(desc: DescMessage, fields: Record<string, unknown>): Message {
  const value = desc.fields[0]?.message as DescMessage;
  return create(desc, { fields: toMap(Object.entries(fields).map(([name, one]) => [name, asValue(value, one)])) } as never);
}

function asValue(desc: DescMessage, value: unknown): Message {
  const kind = (name: string, one: unknown) => create(desc, { kind: { case: name, value: one } } as never);
  const typeOf = (name: string) => desc.fields.find((field) => field.localName === name)?.message as DescMessage;
  if (value === null) return kind("nullValue", 0);
  if (typeof value === "string") return kind("stringValue", value);
  if (typeof value === "number") return kind("numberValue", value);
  if (typeof value === "boolean") return kind("boolValue", value);
  if (Array.isArray(value)) {
    const list = create(typeOf("listValue"), { values: value.map((one) => asValue(desc, one)) } as never);
    return kind("listValue", list);
  }
  return kind("structValue", structOf(typeOf("structValue"), value as Record<string, unknown>));
}

function toMap(entries: readonly (readonly [Value, Value])[]): Record<string, Value> {
  const map: Record<string, Value> = {};
  for (const [key, value] of entries)
    Object.defineProperty(map, String(key), { value, enumerable: true, configurable: true, writable: true });
  return map;
}
