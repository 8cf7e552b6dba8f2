import { MAX_UNTYPED_VALUES } from "../../rules/plain-values.ts";
import type { Steps } from "../steps.ts";
import { JsonStrings } from "./json-strings.ts";
import { MAX_SHORT_UNITS, readShortValue, type ShortValue } from "./short-values.ts";

/** Deeper than any legitimate message, and far below the limit of the stack. */
const MAX_DEPTH = 64;

/** More names and values than any message can have; a body of 32 MiB could contain sixteen million. */
const MAX_VALUES = 100_000;

/** Longer than any field name and any legitimate map key. */
const MAX_NAME_UNITS = 4_096;

/** Maximum number of failed attempts to read a value at once, per MAX_SHORT_UNITS of text. */
const MAX_ATTEMPTS = 8;

/** The longest value that raw() returns. */
const MAX_RAW_UNITS = 262_144;

// Bounded, so that endless digits take no CPU time.
const NUMBER = /-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?(?:[eE][+-]?\d{1,20})?/y;

type Container = "object" | "array";

const OPEN = { object: "{", array: "[" } as const;
const CLOSE = { object: "}", array: "]" } as const;

/**
 * A pull parser for JSON. Unlike JSON.parse it keeps the digits of numbers, rejects duplicate names and lone
 * surrogates, and can pause between tokens.
 */
export class JsonScanner extends JsonStrings {
  #depth = 0;
  #untyped = 0;
  #attempts = 0;
  #attemptedFrom = 0;

  constructor(bytes: Buffer) {
    super(bytes, MAX_RAW_UNITS);
  }

  /** Counts a value whose type the .proto leaves open; false if there are too many. */
  countUntyped(): boolean {
    return ++this.#untyped <= MAX_UNTYPED_VALUES;
  }

  /**
   * Reads the next object or list at once and counts all values in it. Returns undefined and consumes nothing if it must be
   * read in parts.
   */
  shortUntyped(): ShortValue["value"] | undefined {
    const read = this.#readShort(MAX_UNTYPED_VALUES - this.#untyped);
    if (read) this.#untyped += read.values;
    return read?.value;
  }

  /** The kind of the next value, by its first character. */
  peek(): Container | "string" | "number" | "true" | "false" | "null" {
    this.skipSpace();
    switch (this.text[this.at]) {
      case "{":
        return "object";
      case "[":
        return "array";
      case '"':
        return "string";
      case "t":
        return "true";
      case "f":
        return "false";
      case "n":
        return "null";
      default:
        return "number";
    }
  }

  /** Enters an object or a list. False if it is empty, and then it is read. */
  enterContainer(container: Container): boolean {
    this.#expect(OPEN[container]);
    if (++this.#depth > MAX_DEPTH) throw this.fail(`more than ${MAX_DEPTH} levels of objects and lists`);
    if (!this.#take(CLOSE[container])) return this.#count();
    this.#depth--;
    return false;
  }

  /** After a value: whether another one follows. If not, the object or list is read. */
  next(container: Container): boolean {
    if (this.#take(",")) return this.#count();
    this.#expect(CLOSE[container]);
    this.#depth--;
    return false;
  }

  /** The name of a member; the scanner is then before its value. */
  name(): string {
    const name = this.shortString(MAX_NAME_UNITS);
    if (name === undefined) throw this.fail("a member name is too long");
    this.#expect(":");
    return name;
  }

  /** Yields the name of each member, with the scanner positioned before its value. */
  *members(): Generator<string, void> {
    const seen = new Set<string>();
    for (let more = this.enterContainer("object"); more; more = this.next("object")) {
      const name = this.name();
      if (seen.has(name)) throw this.duplicate(name);
      seen.add(name);
      yield name;
    }
  }

  /** Yields the index of each item, with the scanner positioned before it. */
  *items(): Generator<number, void> {
    let index = 0;
    for (let more = this.enterContainer("array"); more; more = this.next("array")) yield index++;
  }

  duplicate(name: string): Error {
    return this.fail(`the name ${JSON.stringify(name.slice(0, 100))} occurs twice in one object`);
  }

  /** The digits as written. */
  number(): string {
    this.skipSpace();
    NUMBER.lastIndex = this.at;
    if (!NUMBER.test(this.text)) throw this.fail("a value is missing");
    const digits = this.text.slice(this.at, NUMBER.lastIndex);
    this.at = NUMBER.lastIndex;
    return digits;
  }

  literal(word: "true" | "false" | "null"): void {
    this.skipSpace();
    if (!this.text.startsWith(word, this.at)) throw this.fail("a value is missing");
    this.at += word.length;
  }

  /**
   * Skips a value with the same checks as reading it, and returns it as written; undefined if it is too long.
   */
  *raw(): Steps<string | undefined> {
    this.skipSpace();
    const start = this.place;
    this.keptFrom = start;
    yield* this.skip();
    this.keptFrom = undefined;
    if (this.place - start > MAX_RAW_UNITS) return undefined;
    return this.since(start);
  }

  *skip(): Steps<void> {
    if (this.isDue()) yield;
    const kind = this.peek();
    if ((kind === "object" || kind === "array") && this.#readShort(MAX_VALUES)) return;
    if (kind === "object") for (const _ of this.members()) yield* this.skip();
    else if (kind === "array") for (const _ of this.items()) yield* this.skip();
    else if (kind === "string") yield* this.skipString();
    else if (kind === "number") this.finite();
    else this.literal(kind);
  }

  finite(): number {
    const number = Number(this.number());
    if (!Number.isFinite(number)) throw this.fail("a number is too large");
    return number;
  }

  end(): void {
    this.skipSpace();
    if (this.at < this.text.length) throw this.fail("there is text after the end");
  }

  #readShort(maxValues: number): ShortValue | undefined {
    if (this.place - this.#attemptedFrom >= MAX_SHORT_UNITS) {
      this.#attempts = 0;
      this.#attemptedFrom = this.place;
    }
    // In a long value, each level would be tried again.
    if (this.#attempts >= MAX_ATTEMPTS) return undefined;
    const read = readShortValue(this.text, this.at, MAX_DEPTH - this.#depth, MAX_NAME_UNITS);
    if (!read || read.values > Math.min(maxValues, MAX_VALUES - this.values)) {
      this.#attempts++;
      return undefined;
    }
    this.values += read.values;
    this.at += read.units;
    return read;
  }

  #count(): true {
    if (++this.values > MAX_VALUES) throw this.fail(`it has more than ${MAX_VALUES} values`);
    return true;
  }

  #expect(character: string): void {
    if (!this.#take(character)) throw this.fail(`"${character}" is missing`);
  }

  #take(character: string): boolean {
    this.skipSpace();
    if (this.text[this.at] !== character) return false;
    this.at++;
    return true;
  }
}
