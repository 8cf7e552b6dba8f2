import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { keepJsonText, mayMisreadName } from "../../domain/json.ts";

/** The start of an escape that may be an unpaired surrogate. */
const SURROGATES = ["\\ud", "\\uD"];

/** An object or a list, and what it contains. */
export type ShortValue = {
  readonly value: JsonObject | JsonValue[];
  readonly units: number;
  readonly values: number;
};

/**
 * Reads an object or a list with JSON.parse, which takes less than half of the time of reading it in parts. Undefined
 * if it must be read in parts: it is too long, or it may be refused, which the scanner explains.
 */
export function readShortValue(text: string, start: number, maxDepth: number, maxNameUnits: number): ShortValue | undefined {
  const span = spanAt(text, start, maxDepth);
  if (!span) return undefined;
  const json = text.slice(start, span.end);
  const hasEscapes = json.includes("\\");
  if (hasEscapes && (mayMisreadName(json) || SURROGATES.some((surrogate) => json.includes(surrogate)))) return undefined;
  const value = parsed(json);
  if (value === undefined) return undefined;
  const contents = new Contents(span.parts);
  contents.measure(value);
  // JSON.parse keeps only the last of the members with one name.
  if (!contents.isFinite || contents.members !== span.members) return undefined;
  if (contents.longestName > maxNameUnits) return undefined;
  if (!hasEscapes) contents.keepTexts(json);
  return { value, units: json.length, values: contents.values };
}

function parsed(json: string): JsonObject | JsonValue[] | undefined {
  try {
    return JSON.parse(json) as JsonObject | JsonValue[];
  } catch {
    return undefined;
  }
}

/** Counts and measures what an object or a list contains. */
class Contents {
  values = 0;
  members = 0;
  longestName = 0;
  isFinite = true;
  /** Whether JavaScript keeps the order of all members. */
  #isInOrder = true;
  #containers = 0;
  readonly #parts: ReadonlyMap<number, Part>;
  readonly #kept: { readonly object: JsonObject; readonly part: Part }[] = [];

  constructor(parts: ReadonlyMap<number, Part>) {
    this.#parts = parts;
  }

  /** Returns the length of the text that JSON.stringify() writes, apart from escapes. */
  measure(container: JsonObject | JsonValue[]): number {
    const part = this.#parts.get(this.#containers++);
    const isList = Array.isArray(container);
    const units = isList ? this.#measureItems(container) : this.#measureMembers(container);
    if (!isList && part?.units === units) this.#kept.push({ object: container, part });
    return units;
  }

  /** Keeps the texts of large objects as long as JSON.stringify() writes them: almost without spaces. */
  keepTexts(json: string): void {
    if (!this.#isInOrder) return;
    for (const { object, part } of this.#kept) {
      keepJsonText(object, json.slice(part.start, part.start + part.units));
    }
  }

  #measureItems(list: readonly JsonValue[]): number {
    this.values += list.length;
    // Each item is followed by a comma or a bracket.
    let units = 1;
    for (const item of list) units += this.#measureValue(item) + 1;
    return Math.max(units, 2);
  }

  #measureMembers(object: JsonObject): number {
    let units = 1;
    // Object.entries takes twice as long for an object with many names.
    for (const name in object) {
      this.members++;
      this.values++;
      this.longestName = Math.max(this.longestName, name.length);
      if (isDigit(name.charCodeAt(0))) this.#isInOrder = false;
      units += name.length + 3 + this.#measureValue(object[name] as JsonValue) + 1;
    }
    return Math.max(units, 2);
  }

  #measureValue(value: JsonValue): number {
    if (typeof value === "string") return value.length + 2;
    if (typeof value === "object" && value !== null) return this.measure(value);
    if (typeof value === "number" && !Number.isFinite(value)) this.isFinite = false;
    return String(value).length;
  }
}

function isDigit(code: number): boolean {
  return code >= 0x30 && code <= 0x39;
}

/** Objects and lists up to this size are read at once: under a millisecond of work. */
export const MAX_SHORT_UNITS = 65_536;
const MAX_SHORT_VALUES = 4_096;

/** The text of an object of this size is kept: writing it again takes as long as reading it. */
const MIN_PART_UNITS = 4_096;

/** Longer than any number or indentation that is usual; the scanner has limits for both. */
const MAX_GAP_UNITS = 256;

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** A large object or list inside another one. */
type Part = { readonly start: number; readonly units: number };

type Span = {
  readonly end: number;
  readonly members: number;
  /** By the number of objects and lists that start before it. */
  readonly parts: ReadonlyMap<number, Part>;
};

/**
 * Finds the end of the object or list that starts there, without a check of its syntax; undefined if it is too long,
 * too deep, or not like the text of usual values.
 */
function spanAt(text: string, start: number, maxDepth: number): Span | undefined {
  const stop = Math.min(text.length, start + MAX_SHORT_UNITS);
  const open: { readonly number: number; readonly start: number }[] = [];
  const parts = new Map<number, Part>();
  let containers = 0;
  let members = 0;
  let commas = 0;
  let gapFrom = start;
  for (let at = start; at < stop; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at, stop);
        break;
      case COLON:
        members++;
        break;
      case COMMA:
        commas++;
        break;
      case OPEN_LIST:
      case OPEN_OBJECT:
        open.push({ number: containers++, start: at - start });
        if (open.length > maxDepth) return undefined;
        break;
      case CLOSE_LIST:
      case CLOSE_OBJECT: {
        const closed = open.pop();
        if (closed && at - start - closed.start >= MIN_PART_UNITS) {
          parts.set(closed.number, { start: closed.start, units: at + 1 - start - closed.start });
        }
        if (open.length === 0) return { end: at + 1, members, parts };
        break;
      }
      default:
        if (at - gapFrom > MAX_GAP_UNITS) return undefined;
        continue;
    }
    if (containers + commas > MAX_SHORT_VALUES) return undefined;
    gapFrom = at;
  }
  return undefined;
}

/** The position of the closing quote; `stop` if the text has none. */
function endOfString(text: string, start: number, stop: number): number {
  let end = text.indexOf('"', start + 1);
  while (end >= 0 && end < stop && text.charCodeAt(end - 1) === BACKSLASH && isEscaped(text, end)) {
    end = text.indexOf('"', end + 1);
  }
  return end < 0 ? stop : end;
}

/** Whether an odd number of backslashes is before the quote. */
function isEscaped(text: string, quote: number): boolean {
  let at = quote - 1;
  while (text.charCodeAt(at) === BACKSLASH) at--;
  return (quote - at) % 2 === 0;
}
