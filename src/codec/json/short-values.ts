import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { keepJsonText } from "../../domain/json-text.ts";
import { mayMisreadName } from "../../domain/parse-json.ts";
import { type Part, spanAt } from "./value-span.ts";

/** The start of an escape that may be an unpaired surrogate. */
const SURROGATES = ["\\ud", "\\uD"];

/** An object or a list, and what it contains. */
export type ShortValue = {
  readonly value: JsonObject | JsonValue[];
  readonly units: number;
  /** The number of values in it, at all levels. */
  readonly values: number;
};

/**
 * Reads an object or a list with JSON.parse, which takes less than half of the time of reading it in parts. Undefined
 * if it must be read in parts: it is too long, or it may be refused, which the scanner explains.
 */
export function readShortValue(
  text: string,
  start: number,
  maxDepth: number,
  maxNameUnits: number,
): ShortValue | undefined {
  const span = spanAt(text, start, maxDepth);
  if (!span) return undefined;
  const json = text.slice(start, span.end);
  const hasEscapes = json.includes("\\");
  if (hasEscapes && (mayMisreadName(json) || mayBreakPairs(json))) return undefined;
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

function mayBreakPairs(json: string): boolean {
  return SURROGATES.some((surrogate) => json.includes(surrogate));
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
