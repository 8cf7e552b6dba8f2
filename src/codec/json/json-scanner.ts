import { MAX_UNTYPED_VALUES } from "../../rules/untyped-values.ts";
import { invalid, type RestProblem } from "../problem.ts";
import type { Steps } from "../steps.ts";
import { TextWindow } from "./text-window.ts";

/** Deeper than any legitimate message, and far below the limit of the stack. */
const MAX_DEPTH = 64;

/** More names and values than any message can have; a body of 32 MiB could hold sixteen million. */
const MAX_VALUES = 100_000;

/** Longer than any field name and any legitimate map key. */
const MAX_NAME_UNITS = 4_096;

/** UTF-16 units read at once: well under a millisecond of work. */
const PIECE_UNITS = 65_536;

/** Units to read before other calls may run. */
const STEP_UNITS = 131_072;

/** Units decoded past the read position: the longest whitespace and the longest string read at once. */
const AHEAD_UNITS = 2 * PIECE_UNITS + 64;

/** The longest value that raw() returns. */
const MAX_RAW_UNITS = 262_144;

/** Maximum units of one character: two escapes of six. */
const UNITS_PER_CHARACTER = 12;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;

// Bounded, so that endless digits or whitespace take no CPU time.
const NUMBER = /-?(?:0|[1-9]\d{0,400})(?:\.\d{1,400})?(?:[eE][+-]?\d{1,20})?/y;
const WHITESPACE = /[ \t\n\r]{0,65536}/y;

/**
 * A pull parser for JSON. Unlike JSON.parse it keeps the digits of numbers, rejects duplicate names and lone
 * surrogates, and can pause between tokens; JSON.parse decodes the strings.
 */
export class JsonScanner extends TextWindow {
  #restedAt = 0;
  #depth = 0;
  #values = 0;
  #untyped = 0;

  constructor(bytes: Buffer) {
    super(bytes, AHEAD_UNITS, MAX_RAW_UNITS);
  }

  /** Whether enough was read since the last time that other calls should run now. */
  isDue(): boolean {
    if (this.place - this.#restedAt < STEP_UNITS) return false;
    this.#restedAt = this.place;
    return true;
  }

  /** Counts a value whose type the .proto leaves open; false if there are too many. */
  countUntyped(): boolean {
    return ++this.#untyped <= MAX_UNTYPED_VALUES;
  }

  /** The kind of the next value, by its first character. */
  peek(): "object" | "array" | "string" | "number" | "true" | "false" | "null" {
    this.#skipSpace();
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

  /** Yields the name of each member, with the scanner positioned before its value. */
  *members(): Generator<string, void> {
    this.#open("{");
    const seen = new Set<string>();
    if (!this.#take("}")) {
      do {
        const name = this.#quick(MAX_NAME_UNITS);
        if (name === undefined) throw this.#fail("a member name is too long");
        if (seen.has(name))
          throw this.#fail(`the name ${JSON.stringify(name.slice(0, 100))} occurs twice in one object`);
        seen.add(name);
        this.#expect(":");
        this.#count();
        yield name;
      } while (this.#take(","));
      this.#expect("}");
    }
    this.#depth--;
  }

  /** Yields the index of each item, with the scanner positioned before it. */
  *items(): Generator<number, void> {
    this.#open("[");
    if (!this.#take("]")) {
      let index = 0;
      do {
        this.#count();
        yield index++;
      } while (this.#take(","));
      this.#expect("]");
    }
    this.#depth--;
  }

  /**
   * Undefined if it is certainly longer than the limit; a string that is far longer is not decoded as a
   * whole.
   */
  *string(maxCharacters = Number.POSITIVE_INFINITY): Steps<string | undefined> {
    const maxUnits = maxCharacters * UNITS_PER_CHARACTER;
    const text = this.#quick(Math.min(maxUnits, PIECE_UNITS)) ?? (yield* this.#joined(maxUnits));
    return text !== undefined && text.length > maxCharacters * 2 ? undefined : text;
  }

  /** The digits as written. */
  number(): string {
    this.#skipSpace();
    NUMBER.lastIndex = this.at;
    const match = NUMBER.exec(this.text);
    if (!match) throw this.#fail("a value is missing");
    this.at += match[0].length;
    return match[0];
  }

  literal(word: "true" | "false" | "null"): void {
    this.#skipSpace();
    if (!this.text.startsWith(word, this.at)) throw this.#fail("a value is missing");
    this.at += word.length;
  }

  /**
   * Skips a value with the same checks as reading it, and returns it as written; undefined if it is too long.
   */
  *raw(): Steps<string | undefined> {
    this.#skipSpace();
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
    if (kind === "object") for (const _ of this.members()) yield* this.skip();
    else if (kind === "array") for (const _ of this.items()) yield* this.skip();
    else if (kind === "string") {
      if (this.#quick(PIECE_UNITS) === undefined) for (const _ of this.#pieces()) yield;
    } else if (kind === "number") this.finite();
    else this.literal(kind);
  }

  finite(): number {
    const number = Number(this.number());
    if (!Number.isFinite(number)) throw this.#fail("a number is too large");
    return number;
  }

  end(): void {
    this.#skipSpace();
    if (this.at < this.text.length) throw this.#fail("there is text after the end");
  }

  /** A string decoded at once; undefined, and still unread, if it has more units than the limit. */
  #quick(maxUnits: number): string | undefined {
    const start = this.#enterString();
    let end = this.text.indexOf('"', start);
    if (end < 0) {
      if (this.isLast) throw this.#fail("a string is not terminated");
      return undefined;
    }
    // The first quote is nearly always the end. If it is escaped, many may follow, so each unit is read only
    // once.
    if (this.text.charCodeAt(end - 1) === BACKSLASH) end = this.#walk(start, maxUnits);
    if (end >= this.text.length) throw this.#fail("a string is not terminated");
    if (end - start > maxUnits || this.text.charCodeAt(end) !== QUOTE) return undefined;
    this.at = end + 1;
    const value = this.#unescaped(start, end);
    if (!value.isWellFormed()) throw this.#halfPair();
    return value;
  }

  /** Undefined, and not read to its end, if it has more units than the limit. */
  *#joined(maxUnits: number): Steps<string | undefined> {
    const start = this.place;
    const pieces: string[] = [];
    if (maxUnits <= PIECE_UNITS) return undefined;
    for (const piece of this.#pieces()) {
      // The string including its quotes.
      if (this.place - start > maxUnits + 2) return undefined;
      pieces.push(piece);
      if (this.isDue()) yield;
    }
    return pieces.join("");
  }

  /** A long string, decoded in pieces; no piece splits a character. */
  *#pieces(): Generator<string, void> {
    this.at = this.#enterString();
    let half = "";
    for (let isEnd = false; !isEnd; ) {
      this.lookAhead();
      const end = this.#walk(this.at, PIECE_UNITS);
      if (end >= this.text.length) throw this.#fail("a string is not terminated");
      isEnd = this.text.charCodeAt(end) === QUOTE;
      let piece = half + this.#unescaped(this.at, end);
      half = !isEnd && /[\ud800-\udbff]$/.test(piece.slice(-1)) ? piece.slice(-1) : "";
      if (half !== "") piece = piece.slice(0, -1);
      if (!piece.isWellFormed()) throw this.#halfPair();
      this.at = isEnd ? end + 1 : end;
      yield piece;
    }
  }

  /** The start of the string, after its quote. */
  #enterString(): number {
    this.#skipSpace();
    if (this.text.charCodeAt(this.at) !== QUOTE) throw this.#fail("a string is missing");
    return this.at + 1;
  }

  /** The end of the string, or the position after `units` of it, never inside an escape. */
  #walk(start: number, units: number): number {
    const text = this.text;
    const stop = Math.min(text.length, start + units);
    let at = start;
    while (at < stop) {
      const code = text.charCodeAt(at);
      if (code === QUOTE) return at;
      if (code === BACKSLASH) at += text.charCodeAt(at + 1) === LOWER_U ? 6 : 2;
      else at++;
    }
    return at;
  }

  #unescaped(start: number, end: number): string {
    try {
      return JSON.parse(`"${this.text.slice(start, end)}"`) as string;
    } catch {
      throw this.#fail("a string has a control character or an invalid escape");
    }
  }

  #halfPair(): RestProblem {
    return this.#fail("a string has an unpaired surrogate");
  }

  #open(bracket: string): void {
    this.#expect(bracket);
    if (++this.#depth > MAX_DEPTH) throw this.#fail(`more than ${MAX_DEPTH} levels of objects and lists`);
  }

  #count(): void {
    if (++this.#values > MAX_VALUES) throw this.#fail(`it has more than ${MAX_VALUES} values`);
  }

  #expect(character: string): void {
    if (!this.#take(character)) throw this.#fail(`"${character}" is missing`);
  }

  #take(character: string): boolean {
    this.#skipSpace();
    if (this.text[this.at] !== character) return false;
    this.at++;
    return true;
  }

  #skipSpace(): void {
    this.lookAhead();
    const code = this.text.charCodeAt(this.at);
    if (code > 32) return;
    WHITESPACE.lastIndex = this.at;
    this.at += WHITESPACE.exec(this.text)?.[0].length ?? 0;
  }

  #fail(what: string): RestProblem {
    return invalid("", `the body is not valid JSON: ${what}, at character ${this.place}`);
  }
}
