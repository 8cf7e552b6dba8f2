import { isAscii, isUtf8 } from "node:buffer";
import { IgnoredMembers } from "../../rules/ignored-members.ts";
import { MAX_UNTYPED_VALUES } from "../../rules/untyped-values.ts";
import { invalid, RequestProblem } from "../problem.ts";
import type { Steps } from "../steps.ts";
import { MAX_SHORT_UNITS, readShortValue, type ShortValue } from "./short-values.ts";

/** UTF-16 units read at once: well under a millisecond of work. */
const PIECE_UNITS = 65_536;

/** The text or the names and values to read before other calls may run: a few milliseconds of work. */
const STEP_UNITS = 262_144;
const STEP_VALUES = 2_048;

/** A longer string outside ASCII is decoded in parts. ASCII is copied ten times as fast. */
const MAX_UTF8_BYTES = 2_097_152;

/** Units decoded past the read position: the longest whitespace and the longest string read at once. */
const AHEAD_UNITS = 2 * PIECE_UNITS + 64;

/** Maximum units of one character: two escapes of six. */
const UNITS_PER_CHARACTER = 12;

/** V8 copies shorter parts of a text; a longer part would keep the whole text in memory. */
const MIN_SHARED_UNITS = 13;

/** Bytes of a long string checked at once: at most two milliseconds of work. */
const CHECKED_BYTES = 1_048_576;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const LOWER_U = 0x75;
const SPACE = 0x20;

// Bounded, so that endless whitespace takes no CPU time.
const WHITESPACE = /[ \t\n\r]{0,65536}/y;

/** A large text that is never decoded as a whole. Only a window of it is decoded, which moves forward as the text is read. */
class TextWindow {
  readonly #bytes: Buffer;
  /** The number of bytes decoded so far. */
  #end = 0;
  /** The length of the text before the window. */
  #before = 0;
  readonly #aheadUnits: number;
  readonly #keptUnits: number;

  protected text = "";
  /** The read position in the window. */
  protected at = 0;
  /** Text from this place on is kept after it was read, but at most `keptUnits` of it. */
  protected keptFrom: number | undefined;

  /** After each call of lookAhead, `aheadUnits` can be read from the read position. */
  constructor(bytes: Buffer, aheadUnits: number, keptUnits: number) {
    const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    this.#bytes = hasMark ? bytes.subarray(3) : bytes;
    this.#aheadUnits = aheadUnits;
    this.#keptUnits = keptUnits;
    this.#advance();
  }

  /** The read position in the whole text. */
  protected get place(): number {
    return this.#before + this.at;
  }

  /** Whether the window reaches to the end of the text. */
  protected get isLast(): boolean {
    return this.#end >= this.#bytes.length;
  }

  protected lookAhead(): void {
    while (!this.isLast && this.text.length - this.at < this.#aheadUnits) this.#advance();
  }

  /** The text read since that place, which must have been kept. */
  protected since(place: number): string {
    return this.text.slice(place - this.#before, this.at);
  }

  protected restOfBytes(): Buffer {
    return this.#bytes.subarray(this.#end - Buffer.byteLength(this.text.slice(this.at)));
  }

  /** Moves the read position to the start of the rest, over that many units. The text in between is not decoded. */
  protected passTo(rest: Buffer, units: number): void {
    this.at += units;
    if (this.at <= this.text.length) return;
    this.#before += this.at;
    this.#end = this.#bytes.length - rest.length;
    this.text = "";
    this.at = 0;
    this.#advance(2 * this.#aheadUnits);
  }

  /** Drops the part that was read, and decodes more. */
  #advance(windowBytes = WINDOW_BYTES): void {
    const end = endOfCharacter(this.#bytes, this.#end + windowBytes);
    const bytes = this.#bytes.subarray(this.#end, end);
    if (!isUtf8(bytes)) throw new RequestProblem("invalid", "the body is not valid UTF-8");
    const kept = this.keptFrom ?? this.place;
    const from = this.place - kept > this.#keptUnits ? this.at : kept - this.#before;
    this.text = this.text.slice(from) + bytes.toString("utf8");
    this.#end = end;
    this.#before += from;
    this.at -= from;
  }
}

/** Bytes decoded at once. */
const WINDOW_BYTES = 1_048_576;

/** Maximum number of continuation bytes of a UTF-8 character. */
const MAX_CONTINUATIONS = 3;

/** Reads the strings of a JSON text. JSON.parse decodes those with escapes; lone surrogates are rejected. */
class JsonStrings extends TextWindow {
  #restedAt = 0;
  #restedValues = 0;
  /** The number of names and values that were read. */
  protected values = 0;

  constructor(bytes: Buffer, keptUnits: number) {
    super(bytes, AHEAD_UNITS, keptUnits);
  }

  /** Whether enough was read since the last time that other calls should run now. */
  isDue(): boolean {
    if (this.place - this.#restedAt < STEP_UNITS && this.values - this.#restedValues < STEP_VALUES) return false;
    this.#restedAt = this.place;
    this.#restedValues = this.values;
    return true;
  }

  /**
   * The next string; undefined if it is certainly longer than the limit. A string that is far longer is not decoded as a
   * whole.
   */
  *string(maxCharacters = Number.POSITIVE_INFINITY): Steps<string | undefined> {
    const maxUnits = maxCharacters * UNITS_PER_CHARACTER;
    const text = this.shortString(maxUnits) ?? (yield* this.#plain(maxUnits)) ?? (yield* this.#joined(maxUnits));
    return text !== undefined && isTooLong(text, maxCharacters) ? undefined : text;
  }

  /**
   * Like string(), but synchronous; returns undefined and consumes nothing if the string must be read in parts. A string that is
   * too long may be returned.
   */
  stringAtOnce(maxCharacters: number): string | undefined {
    return this.shortString(maxCharacters * UNITS_PER_CHARACTER);
  }

  /** A string decoded at once. Returns undefined and consumes nothing if it has more units than the limit. */
  shortString(maxUnits = PIECE_UNITS): string | undefined {
    const limit = Math.min(maxUnits, PIECE_UNITS);
    const start = this.#enterString();
    let end = this.text.indexOf('"', start);
    if (end < 0) {
      if (this.isLast) throw this.fail("a string is not terminated");
      return undefined;
    }
    // The first quote is nearly always the end. If it is escaped, many may follow, so each unit is read only
    // once.
    if (this.text.charCodeAt(end - 1) === BACKSLASH) end = this.#walk(start, limit);
    if (end >= this.text.length) throw this.fail("a string is not terminated");
    if (end - start > limit || this.text.charCodeAt(end) !== QUOTE) return undefined;
    this.at = end + 1;
    const value = this.#unescaped(start, end);
    if (!value.isWellFormed()) throw this.#halfPair();
    return value;
  }

  protected *skipString(): Steps<void> {
    if (this.shortString() !== undefined) return;
    for (const _ of this.#pieces()) if (this.isDue()) yield;
  }

  protected skipSpace(): void {
    this.lookAhead();
    const code = this.text.charCodeAt(this.at);
    if (code > SPACE) return;
    WHITESPACE.lastIndex = this.at;
    this.at += WHITESPACE.exec(this.text)?.[0].length ?? 0;
  }

  protected fail(what: string): RequestProblem {
    return invalid("", `the body is not valid JSON: ${what}, at character ${this.place}`);
  }

  /**
   * The bytes of a long string, as part of the body; undefined if it has escapes or more bytes than the limit. Consumes nothing.
   */
  *plainBytes(maxBytes = Number.POSITIVE_INFINITY): Steps<Buffer | undefined> {
    this.#enterString();
    const rest = this.restOfBytes().subarray(1);
    const length = rest.subarray(0, maxBytes + 1).indexOf(QUOTE);
    const bytes = rest.subarray(0, Math.max(length, 0));
    if (length <= PIECE_UNITS || bytes.includes(BACKSLASH)) return undefined;
    for (let at = 0; at < length; at += CHECKED_BYTES) {
      if (at > 0) yield;
      if (hasControlCharacter(bytes.subarray(at, at + CHECKED_BYTES))) return undefined;
    }
    return bytes;
  }

  /** Consumes the string whose bytes plainBytes() returned; its text has that many units. */
  passString(bytes: Buffer, units: number): void {
    this.#enterString();
    this.passTo(this.restOfBytes().subarray(bytes.length + 2), units + 2);
  }

  /** A long string without escapes: decoding it at once takes less time and memory than its pieces. */
  *#plain(maxUnits: number): Steps<string | undefined> {
    const bytes = yield* this.plainBytes(maxUnits);
    if (bytes === undefined) return undefined;
    const isText = isAscii(bytes);
    if (!isText && (bytes.length > MAX_UTF8_BYTES || !isUtf8(bytes))) return undefined;
    const text = isText ? bytes.toString("latin1") : bytes.toString();
    this.passString(bytes, text.length);
    return text;
  }

  /** Returns undefined, without reading to the end, if the string has more units than the limit. */
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
      if (end >= this.text.length) throw this.fail("a string is not terminated");
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
    this.skipSpace();
    if (this.text.charCodeAt(this.at) !== QUOTE) throw this.fail("a string is missing");
    return this.at + 1;
  }

  /** The end of the string, or the position after `units` of it, never inside an escape. */
  #walk(start: number, units: number): number {
    const text = this.text;
    const stop = Math.min(text.length, start + units);
    // Most long strings have no escapes, so their units need not be read one by one.
    const piece = text.slice(start, stop);
    const quote = piece.indexOf('"');
    const end = quote < 0 ? stop : start + quote;
    const backslash = piece.indexOf("\\");
    if (backslash < 0 || start + backslash >= end) return end;
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
    const text = this.text.slice(start, end);
    if (text.length < MIN_SHARED_UNITS && isLiteral(text)) return text;
    try {
      return JSON.parse(`"${text}"`) as string;
    } catch {
      throw this.fail("a string has a control character or an invalid escape");
    }
  }

  #halfPair(): RequestProblem {
    return this.fail("a string has an unpaired surrogate");
  }
}

/** Whether a text certainly has more characters than the limit. */
export function isTooLong(text: string, maxCharacters: number): boolean {
  return text.length > maxCharacters * 2;
}

/** Whether a string contains neither escapes nor control characters. */
function isLiteral(text: string): boolean {
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code < SPACE || code === BACKSLASH) return false;
  }
  return true;
}

function hasControlCharacter(bytes: Buffer): boolean {
  for (let i = 0; i < bytes.length; i++) if ((bytes[i] as number) < SPACE) return true;
  return false;
}

/** The wanted position, or the start of the character that it would split. */
function endOfCharacter(bytes: Buffer, wanted: number): number {
  let end = Math.min(wanted, bytes.length);
  for (let i = 0; i < MAX_CONTINUATIONS && ((bytes[end] ?? 0) & 0xc0) === 0x80; i++) end--;
  return end;
}

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
  /** The members that were skipped because their message does not have them. */
  ignored: IgnoredMembers | undefined;
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

  /** Skips the value of a member that its message does not have. */
  ignore(path: string): Steps<void> {
    if (this.peek() !== "null") {
      this.ignored ??= new IgnoredMembers();
      this.ignored.add(path);
    }
    return this.skip();
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
