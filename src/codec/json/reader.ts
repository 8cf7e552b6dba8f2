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
import { parseJson } from "../../domain/parse-json.ts";
import { maxItemsOf, tooMany } from "../../rules/list-limits.ts";
import { valueOfJson } from "../../rules/plain-values.ts";
import { maxBytesOf, maxCharactersOf, tooLong, tooManyBytes } from "../../rules/text-limits.ts";
import { holdsPlainObject, isUntyped } from "../../rules/untyped-values.ts";
import { invalid, RestProblem } from "../problem.ts";
import { setOwn } from "../set-own.ts";
import type { Steps } from "../steps.ts";
import { base64Bytes, base64Length } from "./base64.ts";
import type { JsonScanner } from "./json-scanner.ts";
import { readJsonValue } from "./json-value-reader.ts";
import { findEnumNumber, isNumeric, parseEnum, parseScalar } from "./scalar.ts";
import { collectorOf } from "./unknown-members.ts";
import { hasOwnNull, holdsBareValue, isWellKnown, isWrapper, parseWellKnown } from "./well-known.ts";

/** Reads a JSON object into a message. The path is the position of the object, such as "messages[3]". */
export type Reader = (scanner: JsonScanner, path: string) => Steps<Message>;

type ValueReader = (scanner: JsonScanner, path: string) => Steps<unknown>;
type FieldReader = {
  readonly field: DescField;
  readonly read: (scanner: JsonScanner, path: string, into: Fields) => Steps<void>;
};
type Fields = Record<string, unknown>;

/** Limit for a number or an enum name that is written as a string. */
const MAX_SHORT_CHARACTERS = 1_000;

/** Marks an unknown enum name where unknown names are ignored: the value counts as absent. */
const IGNORED = Symbol("an ignored value");

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

  /** Reads one field, for bodies that are a field of the request. */
  field(field: DescField): (scanner: JsonScanner, into: Message) => Steps<void> {
    const { read } = this.#fieldReader(field);
    return (scanner, into) => read(scanner, field.name, into as unknown as Fields);
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
      const set = new Set<DescField | DescOneof>();
      expect(scanner, "object", path);
      for (const name of scanner.members()) {
        if (scanner.isDue()) yield;
        const where = path === "" ? name : `${path}.${name}`;
        const reader = byName.get(name);
        if (!reader) {
          if (unknown === "refuse") throw invalid(shortened(where), "is not a field of this request");
          if (collector) yield* collector.readMember(scanner, name, fields);
          else yield* scanner.skip();
          continue;
        }
        if (set.has(reader.field)) throw invalid(where, "is given twice, in snake_case and in camelCase");
        set.add(reader.field);
        const { oneof } = reader.field;
        // A member that is null counts as absent, so another one may be set.
        if (oneof && (scanner.peek() !== "null" || hasOwnNull(reader.field))) {
          if (set.has(oneof))
            throw invalid(where, `must not be set together with another field of "${oneof.name}"`);
          set.add(oneof);
        }
        yield* reader.read(scanner, where, fields);
      }
      return message;
    };
  }

  #fieldReader(field: DescField): FieldReader {
    const { localName } = field;
    if (field.fieldKind === "list") {
      const max = maxItemsOf(field);
      const value = this.#valueReader(field);
      const read = function* (scanner: JsonScanner, path: string, into: Fields): Steps<void> {
        if (isNull(scanner)) return;
        const list = into[localName] as unknown[];
        expect(scanner, "array", path);
        for (const index of scanner.items()) {
          if (index >= max) throw invalid(path, tooMany(max));
          if (scanner.isDue()) yield;
          const item = yield* value(scanner, `${path}[${index}]`);
          if (item !== IGNORED) list.push(item);
        }
      };
      return { field, read };
    }
    if (field.fieldKind === "map") return { field, read: this.#mapReader(field) };
    const value = this.#valueReader(field);
    const ownNull = hasOwnNull(field);
    const { oneof } = field;
    const read = function* (scanner: JsonScanner, path: string, into: Fields): Steps<void> {
      if (!ownNull && isNull(scanner)) return;
      const item = yield* value(scanner, path);
      if (item === IGNORED) return;
      if (oneof) into[oneof.localName] = { case: localName, value: item };
      else into[localName] = item;
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
        const item = yield* value(scanner, where);
        if (item === IGNORED) continue;
        setOwn(map, key, item);
      }
    };
  }

  #valueReader(field: DescField): ValueReader {
    if (field.message) {
      if (holdsPlainObject(field)) {
        return function* (scanner, path) {
          expect(scanner, "object", path);
          return yield* readJsonValue(scanner, path);
        };
      }
      if (holdsBareValue(field)) {
        const type = field.message.fields[0]?.scalar as ScalarType;
        return (scanner, path) => readScalar(scanner, path, type);
      }
      return this.of(field.message);
    }
    const { enum: desc, scalar } = field;
    if (desc) return enumReader(desc, this.#unknown);
    if (scalar === ScalarType.STRING) return stringReader(field);
    if (scalar === ScalarType.BYTES) return bytesReader(field);
    return (scanner, path) => readScalar(scanner, path, scalar as ScalarType);
  }
}

function enumReader(desc: DescEnum, unknown: UnknownFields): ValueReader {
  const isNullValue = desc.typeName === "google.protobuf.NullValue";
  return function* (scanner, path) {
    if (isNullValue && isNull(scanner)) return 0;
    const isName = scanner.peek() === "string";
    const text = isName ? yield* readShort(scanner, path, "name") : scanner.number();
    return guarded(path, () => {
      if (isName && unknown === "ignore") return findEnumNumber(desc, text) ?? IGNORED;
      return parseEnum(desc, text);
    });
  };
}

/** A string that is far too long is refused before its characters are counted. */
function stringReader(field: DescField): ValueReader {
  const max = maxCharactersOf(field);
  return function* (scanner, path) {
    if (scanner.peek() !== "string") throw invalid(path, "must be a string");
    const text = yield* scanner.string(max);
    if (text === undefined) throw invalid(path, tooLong(max));
    return text;
  };
}

/** An image of 20 MiB in base64 takes tens of milliseconds to decode, so it is decoded in parts. */
function bytesReader(field: DescField): ValueReader {
  const max = maxBytesOf(field);
  return function* (scanner, path) {
    if (scanner.peek() !== "string") throw invalid(path, "must be a string");
    const text = yield* scanner.string(base64Length(max));
    if (text === undefined) throw invalid(path, tooManyBytes(max));
    const bytes = yield* base64Bytes(text);
    if (bytes === undefined) throw invalid(path, "must be base64");
    return bytes;
  };
}

function* readScalar(scanner: JsonScanner, path: string, type: ScalarType): Steps<unknown> {
  const kind = scanner.peek();
  if (type === ScalarType.BOOL) {
    if (kind !== "true" && kind !== "false") throw invalid(path, "must be true or false");
    scanner.literal(kind);
    return kind === "true";
  }
  if (kind === "string") {
    const isText = type === ScalarType.STRING || type === ScalarType.BYTES;
    const text = isText ? ((yield* scanner.string()) ?? "") : yield* readShort(scanner, path, "number");
    return guarded(path, () => parseScalar(type, text));
  }
  if (kind === "number" && isNumeric(type)) {
    const text = scanner.number();
    return guarded(path, () => parseScalar(type, text));
  }
  throw invalid(path, isNumeric(type) ? "must be a number" : "must be a string");
}

function* readShort(scanner: JsonScanner, path: string, what: string): Steps<string> {
  const text = yield* scanner.string(MAX_SHORT_CHARACTERS);
  if (text === undefined) throw invalid(path, `is too long for a ${what}`);
  return text;
}

/** Reads a value whose form only the protobuf library knows; it is parsed at once. */
function* readRaw(scanner: JsonScanner, path: string): Steps<string> {
  const raw = yield* scanner.raw();
  if (raw === undefined) throw invalid(path, "is too large");
  return raw;
}

/**
 * Timestamps and the like are small and have their own rules: the protobuf library parses them and words the
 * errors.
 */
function wellKnownReader(desc: DescMessage): Reader {
  if (isUntyped(desc)) {
    return function* (scanner, path) {
      return valueOfJson(yield* readJsonValue(scanner, path));
    };
  }
  if (isWrapper(desc)) {
    const type = desc.fields[0]?.scalar as ScalarType;
    return function* (scanner, path) {
      return create(desc, { value: yield* readScalar(scanner, path, type) } as never);
    };
  }
  return function* (scanner, path) {
    const raw = yield* readRaw(scanner, path);
    return guarded(path, () => parseWellKnown(desc, parseJson(raw) as JsonValue));
  };
}

function guarded<Value>(path: string, read: () => Value): Value {
  try {
    return read();
  } catch (error) {
    if (error instanceof RestProblem) throw error;
    throw invalid(path, (error as Error).message);
  }
}

function isNull(scanner: JsonScanner): boolean {
  if (scanner.peek() !== "null") return false;
  scanner.literal("null");
  return true;
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
