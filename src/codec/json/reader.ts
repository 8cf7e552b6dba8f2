import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { parseJson } from "../../domain/json.ts";
import { maxItemsOf, tooMany } from "../../rules/limits.ts";
import { holdsPlainObject, isUntyped } from "../../rules/plain-values.ts";
import { fieldForUnknown } from "../../rules/policy.ts";
import { invalid } from "../problem.ts";
import type { Steps } from "../steps.ts";
import type { JsonScanner } from "./json-scanner.ts";
import { readJsonValue, setOwn } from "./json-value-reader.ts";
import { parseScalar } from "./scalar.ts";
import {
  bytesReader,
  enumReader,
  guarded,
  IGNORED,
  isNull,
  longUntyped,
  Parts,
  readRaw,
  readScalar,
  readUntyped,
  stringReader,
  type ValueReader,
} from "./value-readers.ts";
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

  /** Reads one field, for bodies that are a field of the request. */
  field(field: DescField): (scanner: JsonScanner, into: Message) => Steps<void> {
    const { read } = this.#fieldReader(field);
    return function* (scanner, into) {
      const rest = read(scanner, field.name, into as unknown as Fields);
      if (rest) yield* rest;
    };
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
          rest = collector ? collector.readMember(scanner, name, fields) : scanner.skip();
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
      const read: FieldReader["read"] = (scanner, path, into) =>
        isNull(scanner) ? undefined : readItems(scanner, path, into);
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

/** Sets a field, or the member of its oneof. */
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
    if (this.#given.includes(oneof))
      throw invalid(where, `must not be set together with another field of "${oneof.name}"`);
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
