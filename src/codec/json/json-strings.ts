import { isAscii, isUtf8 } from "node:buffer";
import { invalid, RequestProblem } from "../problem.ts";
import type { Steps } from "../steps.ts";

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

  /** The bytes of the text from the read position. */
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
export class JsonStrings extends TextWindow {
  #restedAt = 0;
  #restedValues = 0;
  /** The number of names and values that were read. */
  protected values = 0;

  constructor(bytes: Buffer, keptUnits: number) {
    super(bytes, AHEAD_UNITS, keptUnits);
  }

  /** Whether enough was read since the last time that other calls should run now. */
  isDue(): boolean {
    if (this.place - this.#restedAt < STEP_UNITS && this.values - this.#restedValues < STEP_VALUES)
      return false;
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
    const text =
      this.shortString(maxUnits) ?? (yield* this.#plain(maxUnits)) ?? (yield* this.#joined(maxUnits));
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
