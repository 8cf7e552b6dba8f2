import {
  type AnyDesc,
  type DescEnum,
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { base64Encode } from "@bufbuild/protobuf/wire";
import { FeatureSet_FieldPresence, type Value } from "@bufbuild/protobuf/wkt";
import { omitsUnset } from "../../rules/policy.ts";
import { holdsPlainObject, isUntyped, jsonOf } from "../../rules/untyped-values.ts";
import { hasOwnNull, holdsBareValue, isWellKnown, isWrapper } from "./well-known.ts";

/** Prints a message as REST JSON. */
export type Writer = (message: Message) => string;

const { IMPLICIT } = FeatureSet_FieldPresence;

type ValueWriter = (value: unknown) => string;

const writers = new WeakMap<DescMessage, Writer>();

/**
 * REST JSON: names as in the .proto, every field present, 64-bit integers as JSON integers with all their
 * digits, otherwise as ProtoJSON. Absent fields are null; those for which null is a value, and those of messages with
 * the option omit_unset, are omitted. One writer is compiled for each message type.
 */
export function writerOf(desc: DescMessage): Writer {
  const known = writers.get(desc);
  if (known) return known;
  // Registered before its fields are compiled: a type may contain itself.
  let write: Writer = () => "";
  const proxy: Writer = (message) => write(message);
  writers.set(desc, proxy);
  write = isWellKnown(desc) ? wellKnownWriter(desc) : messageWriter(desc);
  return proxy;
}

/** A list of messages up to this length is encoded at once. */
const SHORT_ITEMS = 100;

/** Whether the message is worth encoding in parts. Most are not. */
export function hasLongList(desc: DescMessage, message: Message): boolean {
  return desc.fields.some((field) => isLongList(field, message));
}

function longListsOf(desc: DescMessage, message: Message) {
  return desc.fields
    .filter((field): field is Extract<DescField, { fieldKind: "list"; listKind: "message" }> => isLongList(field, message))
    .map((field) => ({ field, items: itemsOf(field, message) }));
}

export function isLongList(field: DescField, message: Message): boolean {
  return field.fieldKind === "list" && field.listKind === "message" && itemsOf(field, message).length > SHORT_ITEMS;
}

export function itemsOf({ localName }: DescField, message: Message): readonly unknown[] {
  return (message as unknown as Readonly<Record<string, readonly unknown[]>>)[localName] ?? [];
}

/** JSON text never has this character. */
const GAP = "\0";

/** Lists that are printed item by item, in gaps of the text of their message. */
const separateLists = new WeakSet<readonly unknown[]>();

/** What the writer prints of the message, in parts: each item of a long list is one. */
export function* writeInParts(write: Writer, desc: DescMessage, message: Message): Generator<string> {
  const lists = longListsOf(desc, message);
  for (const { items } of lists) separateLists.add(items);
  const [start = "", ...ends] = write(message).split(GAP);
  for (const { items } of lists) separateLists.delete(items);
  yield start;
  for (const [i, { field, items }] of lists.entries()) {
    const writeItem = elementWriter("message", field);
    for (const [at, item] of items.entries()) yield (at === 0 ? "" : ",") + writeItem(item);
    yield ends[i] ?? "";
  }
}

/** Prints the value of one field, for responses that are a field of the message. */
export function fieldWriterOf(field: DescField): Writer {
  const read = fieldReader(field);
  const write = fieldWriter(field);
  return (message) => write(read(message));
}

function messageWriter(desc: DescMessage): Writer {
  const isOmitting = omitsUnset(desc);
  const plain = desc.fields
    .filter((field) => !field.oneof)
    .map((field) => ({
      name: label(field),
      read: fieldReader(field),
      write: fieldWriter(field),
      isOmitted: isOmitting || hasOwnNull(field),
    }));
  const oneofs = desc.oneofs.map((oneof) => ({
    oneof,
    members: new Map(oneof.fields.map((field) => [field.localName, { name: label(field), write: fieldWriter(field) }])),
  }));
  return (message) => {
    const fields = message as unknown as Record<string, unknown>;
    const parts: string[] = [];
    for (const { name, read, write, isOmitted } of plain) {
      const value = read(message);
      if (value !== undefined || !isOmitted) parts.push(name + write(value));
    }
    for (const { oneof, members } of oneofs) {
      // Only the member that is set is printed: null would make the others look set.
      const { case: set, value } = fields[oneof.localName] as { case: string | undefined; value?: unknown };
      const member = set === undefined ? undefined : members.get(set);
      if (member) parts.push(member.name + member.write(value));
    }
    return `{${parts.join(",")}}`;
  };
}

/** Reads a field outside of a oneof; undefined if it is not set. */
function fieldReader(field: DescField): (message: Message) => unknown {
  const { localName } = field;
  const own = hasInheritedDefault(field);
  return (message) => {
    const fields = message as unknown as Record<string, unknown>;
    return own && !Object.hasOwn(fields, localName) ? undefined : fields[localName];
  };
}

/** Messages of proto2 return the defaults of absent fields through their prototype. */
function hasInheritedDefault(field: DescField): boolean {
  return (field.fieldKind === "scalar" || field.fieldKind === "enum") && field.presence !== IMPLICIT;
}

function fieldWriter(field: DescField): ValueWriter {
  switch (field.fieldKind) {
    case "scalar":
      return orNull(scalarWriter(field.scalar));
    case "enum":
      return orNull(enumWriter(field.enum));
    case "message":
      if (holdsBareValue(field)) return orNull(scalarWriter(field.message.fields[0]?.scalar as ScalarType));
      return orNull(elementWriter("message", field));
    case "list": {
      const write = elementWriter(field.listKind, field);
      return (value) => {
        const items = value as unknown[];
        return `[${separateLists.has(items) ? GAP : items.map(write).join(",")}]`;
      };
    }
    case "map": {
      const write = elementWriter(field.mapKind, field);
      return (value) =>
        `{${Object.entries(value as Record<string, unknown>)
          .map(([key, item]) => `${JSON.stringify(key)}:${write(item)}`)
          .join(",")}}`;
    }
  }
}

function elementWriter(kind: "scalar" | "enum" | "message", field: DescField): ValueWriter {
  if (kind === "scalar") return scalarWriter(field.scalar as ScalarType);
  if (kind === "enum") return enumWriter(field.enum as DescEnum);
  if (holdsPlainObject(field)) return JSON.stringify;
  return writerOf(field.message as DescMessage) as ValueWriter;
}

function scalarWriter(type: ScalarType): ValueWriter {
  switch (type) {
    case ScalarType.STRING:
      return JSON.stringify;
    case ScalarType.BYTES:
      return (value) => `"${base64Encode(value as Uint8Array)}"`;
    case ScalarType.FLOAT:
    case ScalarType.DOUBLE:
      // NaN and the infinities are strings in ProtoJSON; -0 keeps its sign.
      return (value) => (Number.isFinite(value) ? (Object.is(value, -0) ? "-0" : String(value)) : JSON.stringify(String(value)));
    default:
      return String;
  }
}

function enumWriter(desc: DescEnum): ValueWriter {
  return (value) => {
    const known = desc.value[value as number];
    if (desc.typeName === "google.protobuf.NullValue") return "null";
    return known ? JSON.stringify(known.name) : String(value);
  };
}

function orNull(write: ValueWriter): ValueWriter {
  return (value) => (value === undefined ? "null" : write(value));
}

function wellKnownWriter(desc: DescMessage): Writer {
  if (isUntyped(desc)) return (message) => JSON.stringify(jsonOf(message as Value));
  if (isWrapper(desc)) {
    const write = scalarWriter(desc.fields[0]?.scalar as ScalarType);
    return (message) => write((message as unknown as { value: unknown }).value);
  }
  return (message) => JSON.stringify(toJson(desc, message));
}

function label(desc: Extract<AnyDesc, { kind: "field" }>): string {
  return `${JSON.stringify(desc.name)}:`;
}
