import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  type DescOneof,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { base64Length } from "../../domain/base64.ts";
import { parseJson } from "../../domain/json.ts";
import { maxBytesOf, maxCharactersOf, maxItemsOf, tooLong, tooMany, tooManyBytes } from "../../rules/body-limits.ts";
import { fieldForUnknown, holdsPlainObject, isUntyped, valueOfJson } from "../../rules/untyped-values.ts";
import { invalid, RequestProblem } from "../problem.ts";
import type { Steps } from "../steps.ts";
import { isTooLong, type JsonScanner } from "./json-scanner.ts";
import { readJsonValue, readShortJson, setOwn } from "./json-value-reader.ts";
import { base64Bytes, findEnumNumber, isNumeric, parseEnum, parseScalar } from "./scalar.ts";
import { hasOwnNull, holdsBareValue, isWellKnown, isWrapper, parseWellKnown } from "./well-known.ts";

/** Reads a JSON object into a message. The path is the position of the object, such as "messages[3]". */
export type Reader = (scanner: JsonScanner, path: string) => Steps<Message>;

type Setter = (into: Fields, item: unknown) => void;
type FieldReader = {
  readonly field: DescField;
  /** Returns undefined if it has read the field at once: a generator for each scalar would cost more than reading it. */
  readonly read: (scanner: JsonScanner, path: string, into: Fields) => Steps<void> | undefined;
};
type Fields = Record<string, unknown>;

/** How a reader handles unknown field and enum names. */
export type UnknownFields = "refuse" | "ignore";

/** Compiles the reader of each message type, and of the types that it contains, once. */
export class Readers {
  readonly #readers = new Map<DescMessage, Reader>();
  readonly #unknown: UnknownFields;

  constructor(unknown: UnknownFields) {
    this.#unknown = unknown;
  }

  of(desc: DescMessage): Reader {
    const known = this.#readers.get(desc);
    if (known) return known;
    // Registered before its fields are compiled: a type may contain itself.
    let read: Reader | undefined;
    const proxy: Reader = (scanner, path) => (read as Reader)(scanner, path);
    this.#readers.set(desc, proxy);
    read = isWellKnown(desc) ? wellKnownReader(desc) : this.#messageReader(desc);
    return proxy;
  }

  #messageReader(desc: DescMessage): Reader {
    // A Map, not an object: names such as "__proto__" need no special case.
    const byName = new Map<string, FieldReader>();
    const collector = collectorOf(desc);
    for (const field of desc.fields) {
      const reader = field === collector?.field ? collector : this.#fieldReader(field);
      byName.set(field.name, reader);
      byName.set(field.jsonName, reader);
    }
    const unknown = this.#unknown;
    return function* (scanner, path) {
      const message = create(desc);
      const fields = message as unknown as Fields;
      const names = new MemberNames(scanner);
      expect(scanner, "object", path);
      for (let more = scanner.enterContainer("object"); more; more = scanner.next("object")) {
        if (scanner.isDue()) yield;
        const name = scanner.name();
        const where = path === "" ? name : `${path}.${name}`;
        const reader = byName.get(name);
        let rest: Steps<void> | undefined;
        if (reader) {
          names.add(reader.field, name, where);
          rest = reader.read(scanner, where, fields);
        } else {
          names.addUnknown(name);
          if (unknown === "refuse") throw invalid(shortened(where), "is not a field of this request");
          rest = collector ? collector.readMember(scanner, name, fields) : scanner.ignore(where);
        }
        if (rest) yield* rest;
      }
      return message;
    };
  }

  #fieldReader(field: DescField): FieldReader {
    const { localName } = field;
    if (field.fieldKind === "list") {
      const max = maxItemsOf(field);
      const value = this.#valueReader(field);
      const readItems = function* (scanner: JsonScanner, path: string, into: Fields): Steps<void> {
        const list = into[localName] as unknown[];
        expect(scanner, "array", path);
        let index = 0;
        for (let more = scanner.enterContainer("array"); more; more = scanner.next("array")) {
          if (index >= max) throw invalid(path, tooMany(max));
          if (scanner.isDue()) yield;
          const read = value(scanner, `${path}[${index++}]`);
          const item = read instanceof Parts ? yield* read.steps : read;
          if (item !== IGNORED) list.push(item);
        }
      };
      const read: FieldReader["read"] = (scanner, path, into) => (isNull(scanner) ? undefined : readItems(scanner, path, into));
      return { field, read };
    }
    if (field.fieldKind === "map") return { field, read: this.#mapReader(field) };
    const value = this.#valueReader(field);
    const ownNull = hasOwnNull(field);
    const set = setterOf(field);
    const read: FieldReader["read"] = (scanner, path, into) => {
      if (!ownNull && isNull(scanner)) return undefined;
      const item = value(scanner, path);
      if (item instanceof Parts) return setLater(item.steps, set, into);
      set(into, item);
      return undefined;
    };
    return { field, read };
  }

  #mapReader(field: DescField & { fieldKind: "map" }): FieldReader["read"] {
    const value = this.#valueReader(field);
    return function* (scanner, path, into) {
      if (isNull(scanner)) return;
      const map = into[field.localName] as Fields;
      expect(scanner, "object", path);
      for (const name of scanner.members()) {
        if (scanner.isDue()) yield;
        const where = shortened(`${path}["${name}"]`);
        const key = String(guarded(where, () => parseScalar(field.mapKey, name)));
        if (Object.hasOwn(map, key)) throw invalid(where, "is given twice, in two notations");
        const read = value(scanner, where);
        const item = read instanceof Parts ? yield* read.steps : read;
        if (item !== IGNORED) setOwn(map, key, item);
      }
    };
  }

  #valueReader(field: DescField): ValueReader {
    if (field.message) {
      if (holdsPlainObject(field)) {
        return (scanner, path) => {
          expect(scanner, "object", path);
          return new Parts(readJsonValue(scanner, path));
        };
      }
      if (holdsBareValue(field)) {
        const type = field.message.fields[0]?.scalar as ScalarType;
        return (scanner, path) => readScalar(scanner, path, type);
      }
      if (isUntyped(field.message)) return readUntyped;
      const read = this.of(field.message);
      return (scanner, path) => new Parts(read(scanner, path));
    }
    const { enum: desc, scalar } = field;
    if (desc) return enumReader(desc, this.#unknown);
    if (scalar === ScalarType.STRING) return stringReader(field);
    if (scalar === ScalarType.BYTES) return bytesReader(field);
    return (scanner, path) => readScalar(scanner, path, scalar as ScalarType);
  }
}

function setterOf({ localName, oneof }: DescField): Setter {
  return (into, item) => {
    if (item === IGNORED) return;
    if (oneof) into[oneof.localName] = { case: localName, value: item };
    else into[localName] = item;
  };
}

function* setLater(steps: Steps<unknown>, set: Setter, into: Fields): Steps<void> {
  set(into, yield* steps);
}

/**
 * Timestamps and the like are small and have their own rules: the protobuf library parses them and words the
 * errors.
 */
function wellKnownReader(desc: DescMessage): Reader {
  if (isUntyped(desc)) return longUntyped;
  if (isWrapper(desc)) {
    const type = desc.fields[0]?.scalar as ScalarType;
    return function* (scanner, path) {
      const read = readScalar(scanner, path, type);
      return create(desc, { value: read instanceof Parts ? yield* read.steps : read } as never);
    };
  }
  return function* (scanner, path) {
    const raw = yield* readRaw(scanner, path);
    return guarded(path, () => parseWellKnown(desc, parseJson(raw) as JsonValue));
  };
}

function expect(scanner: JsonScanner, kind: "object" | "array", path: string): void {
  if (scanner.peek() !== kind) {
    const what = kind === "object" ? "must be an object" : "must be a list";
    throw path === "" ? invalid("", `the body ${what}`) : invalid(path, what);
  }
}

function shortened(path: string): string {
  return path.length <= 200 ? path : `${path.slice(0, 200)}…`;
}

/** The names that the JSON object of a message has so far: each field, and each oneof, can be given once. */
class MemberNames {
  readonly #scanner: JsonScanner;
  /** In lists, because a Map costs more than the usual number of members. */
  readonly #given: (DescField | DescOneof)[] = [];
  readonly #names: string[] = [];
  #unknown: Set<string> | undefined;

  constructor(scanner: JsonScanner) {
    this.#scanner = scanner;
  }

  /** The scanner is before the value of the member. */
  add(field: DescField, name: string, where: string): void {
    const earlier = this.#given.indexOf(field);
    if (earlier >= 0) {
      if (this.#names[earlier] === name) throw this.#scanner.duplicate(name);
      throw invalid(where, "is given twice, in snake_case and in camelCase");
    }
    this.#remember(field, name);
    const { oneof } = field;
    // A member that is null counts as absent, so another one may be set.
    if (!oneof || (this.#scanner.peek() === "null" && !hasOwnNull(field))) return;
    if (this.#given.includes(oneof)) throw invalid(where, `must not be set together with another field of "${oneof.name}"`);
    this.#remember(oneof, name);
  }

  #remember(given: DescField | DescOneof, name: string): void {
    this.#given.push(given);
    this.#names.push(name);
  }

  addUnknown(name: string): void {
    this.#unknown ??= new Set();
    if (this.#unknown.has(name)) throw this.#scanner.duplicate(name);
    this.#unknown.add(name);
  }
}

const MAX_NAME_CHARACTERS = 100;

type ReadMember = (scanner: JsonScanner, name: string, into: Record<string, unknown>) => Steps<void>;

type Collector = {
  readonly field: DescField;
  /** Reads an unknown member of the body. */
  readonly readMember: ReadMember;
  /** Reads the collecting field itself, if the body contains it. */
  readonly read: ReadMember;
};

/** Reads unknown members into the field of the message that collects them; undefined if there is no such field. */
function collectorOf(desc: DescMessage): Collector | undefined {
  const field = fieldForUnknown(desc);
  if (!field) return undefined;
  const readMember: ReadMember = function* (scanner, name, into) {
    const shown = name.slice(0, MAX_NAME_CHARACTERS);
    into[field.localName] ??= {};
    const collected = into[field.localName] as Record<string, unknown>;
    if (Object.hasOwn(collected, name)) throw invalid(shown, `is given twice, once inside "${field.name}"`);
    setOwn(collected, name, yield* readJsonValue(scanner, shown));
  };
  const read: ReadMember = function* (scanner, path, into) {
    const kind = scanner.peek();
    if (kind === "null") return scanner.literal(kind);
    if (kind !== "object") throw invalid(path, "must be an object");
    into[field.localName] ??= {};
    for (const name of scanner.members()) yield* readMember(scanner, name, into);
  };
  return { field, readMember, read };
}

/** Returns the value, or `Parts` if it must be read in parts: a generator costs more than reading most values. */
type ValueReader = (scanner: JsonScanner, path: string) => unknown;

/** The steps that read a value. */
export class Parts {
  readonly steps: Steps<unknown>;

  constructor(steps: Steps<unknown>) {
    this.steps = steps;
  }
}

/** Limit for a number or an enum name that is written as a string. */
const MAX_SHORT_CHARACTERS = 1_000;

/** An unknown enum name where unknown names are ignored: the value counts as absent. */
const IGNORED = Symbol("an ignored value");

function enumReader(desc: DescEnum, unknown: "refuse" | "ignore"): ValueReader {
  const isNullValue = desc.typeName === "google.protobuf.NullValue";
  return (scanner, path) => {
    if (isNullValue && isNull(scanner)) return 0;
    const isName = scanner.peek() === "string";
    const text = isName ? readShort(scanner, path, "name") : scanner.number();
    return guarded(path, () => {
      if (isName && unknown === "ignore") return findEnumNumber(desc, text) ?? IGNORED;
      return parseEnum(desc, text);
    });
  };
}

/** A string that is far too long is refused before its characters are counted. */
function stringReader(field: DescField): ValueReader {
  const max = maxCharactersOf(field);
  return (scanner, path) => {
    if (scanner.peek() !== "string") throw invalid(path, "must be a string");
    const text = scanner.stringAtOnce(max);
    if (text === undefined) return new Parts(longString(scanner, path, max));
    if (isTooLong(text, max)) throw invalid(path, tooLong(max));
    return text;
  };
}

function* longString(scanner: JsonScanner, path: string, max: number): Steps<string> {
  const text = yield* scanner.string(max);
  if (text === undefined) throw invalid(path, tooLong(max));
  return text;
}

/** The base64 of an image of 20 MiB takes tens of milliseconds to decode, so it is decoded in parts, and never a text as a whole. */
function bytesReader(field: DescField): ValueReader {
  const max = maxBytesOf(field);
  const maxLength = base64Length(max);
  const read = function* (scanner: JsonScanner, path: string): Steps<unknown> {
    if (scanner.peek() !== "string") throw invalid(path, "must be a string");
    const plain = yield* scanner.plainBytes();
    if (plain) scanner.passString(plain, plain.length);
    const text = plain ?? (yield* scanner.string(maxLength));
    if (text === undefined || text.length > maxLength) throw invalid(path, tooManyBytes(max));
    const bytes = yield* base64Bytes(typeof text === "string" ? Buffer.from(text) : text);
    if (bytes === undefined) throw invalid(path, "must be base64");
    return bytes;
  };
  return (scanner, path) => new Parts(read(scanner, path));
}

function readScalar(scanner: JsonScanner, path: string, type: ScalarType): unknown {
  const kind = scanner.peek();
  if (type === ScalarType.BOOL) {
    if (kind !== "true" && kind !== "false") throw invalid(path, "must be true or false");
    scanner.literal(kind);
    return kind === "true";
  }
  if (kind === "string") {
    const isText = type === ScalarType.STRING || type === ScalarType.BYTES;
    if (isText) return new Parts(longScalar(scanner, path, type));
    const text = readShort(scanner, path, "number");
    return guarded(path, () => parseScalar(type, text));
  }
  if (kind === "number" && isNumeric(type)) {
    const text = scanner.number();
    return guarded(path, () => parseScalar(type, text));
  }
  throw invalid(path, isNumeric(type) ? "must be a number" : "must be a string");
}

function* longScalar(scanner: JsonScanner, path: string, type: ScalarType): Steps<unknown> {
  const text = (yield* scanner.string()) ?? "";
  return guarded(path, () => parseScalar(type, text));
}

function readShort(scanner: JsonScanner, path: string, what: string): string {
  const text = scanner.stringAtOnce(MAX_SHORT_CHARACTERS);
  if (text === undefined || isTooLong(text, MAX_SHORT_CHARACTERS)) throw invalid(path, `is too long for a ${what}`);
  return text;
}

/** Most untyped values are short texts. */
function readUntyped(scanner: JsonScanner, path: string): unknown {
  const json = readShortJson(scanner, path);
  return json === undefined ? new Parts(longUntyped(scanner, path)) : valueOfJson(json);
}

function* longUntyped(scanner: JsonScanner, path: string): Steps<Message> {
  return valueOfJson(yield* readJsonValue(scanner, path));
}

/** Reads a value whose form only the protobuf library knows; it is parsed at once. */
function* readRaw(scanner: JsonScanner, path: string): Steps<string> {
  const raw = yield* scanner.raw();
  if (raw === undefined) throw invalid(path, "is too large");
  return raw;
}

export function guarded<Value>(path: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (error instanceof RequestProblem) throw error;
    throw invalid(path, (error as Error).message);
  }
}

function isNull(scanner: JsonScanner): boolean {
  if (scanner.peek() !== "null") return false;
  scanner.literal("null");
  return true;
}
