import { type DescEnum, type DescField, type Message, ScalarType } from "@bufbuild/protobuf";
import { base64Length } from "../../domain/base64.ts";
import { maxBytesOf, maxCharactersOf, tooLong, tooManyBytes } from "../../rules/limits.ts";
import { valueOfJson } from "../../rules/plain-values.ts";
import { invalid, RequestProblem } from "../problem.ts";
import type { Steps } from "../steps.ts";
import type { JsonScanner } from "./json-scanner.ts";
import { isTooLong } from "./json-strings.ts";
import { readJsonValue, readShortJson } from "./json-value-reader.ts";
import { base64Bytes, findEnumNumber, isNumeric, parseEnum, parseScalar } from "./scalar.ts";

/** Returns the value, or `Parts` if it must be read in parts: a generator costs more than reading most values. */
export type ValueReader = (scanner: JsonScanner, path: string) => unknown;

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
export const IGNORED = Symbol("an ignored value");

export function enumReader(desc: DescEnum, unknown: "refuse" | "ignore"): ValueReader {
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
export function stringReader(field: DescField): ValueReader {
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
export function bytesReader(field: DescField): ValueReader {
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

export function readScalar(scanner: JsonScanner, path: string, type: ScalarType): unknown {
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
  if (text === undefined || isTooLong(text, MAX_SHORT_CHARACTERS))
    throw invalid(path, `is too long for a ${what}`);
  return text;
}

/** Most untyped values are short texts. */
export function readUntyped(scanner: JsonScanner, path: string): unknown {
  const json = readShortJson(scanner, path);
  return json === undefined ? new Parts(longUntyped(scanner, path)) : valueOfJson(json);
}

export function* longUntyped(scanner: JsonScanner, path: string): Steps<Message> {
  return valueOfJson(yield* readJsonValue(scanner, path));
}

/** Reads a value whose form only the protobuf library knows; it is parsed at once. */
export function* readRaw(scanner: JsonScanner, path: string): Steps<string> {
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

export function isNull(scanner: JsonScanner): boolean {
  if (scanner.peek() !== "null") return false;
  scanner.literal("null");
  return true;
}
