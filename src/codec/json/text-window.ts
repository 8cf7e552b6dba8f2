import { isUtf8 } from "node:buffer";
import { RestProblem } from "../problem.ts";

/** Bytes decoded at once. */
const WINDOW_BYTES = 1_048_576;

/** Maximum number of continuation bytes of a UTF-8 character. */
const MAX_CONTINUATIONS = 3;

/** A large text that is never decoded as a whole: a window of it is decoded, and advances as it is read. */
export class TextWindow {
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

  /** The bytes of the text from that place in the window. */
  protected bytesFrom(at: number): Buffer {
    return this.#bytes.subarray(this.#end - Buffer.byteLength(this.text.slice(at)));
  }

  /** Moves the read position over ASCII text, of which only the part in the window is decoded. */
  protected passAscii(units: number): void {
    const undecoded = this.at + units - this.text.length;
    this.at += units;
    if (undecoded <= 0) return;
    this.#before += this.at;
    this.#end += undecoded;
    this.text = "";
    this.at = 0;
    this.#advance(2 * this.#aheadUnits);
  }

  /** Drops the part that was read, and decodes more. */
  #advance(windowBytes = WINDOW_BYTES): void {
    const end = endOfCharacter(this.#bytes, this.#end + windowBytes);
    const bytes = this.#bytes.subarray(this.#end, end);
    if (!isUtf8(bytes)) throw new RestProblem("invalid", "the body is not valid UTF-8");
    const kept = this.keptFrom ?? this.place;
    const from = this.place - kept > this.#keptUnits ? this.at : kept - this.#before;
    this.text = this.text.slice(from) + bytes.toString("utf8");
    this.#end = end;
    this.#before += from;
    this.at -= from;
  }
}

/** The wanted position, or the start of the character that it would split. */
function endOfCharacter(bytes: Buffer, wanted: number): number {
  let end = Math.min(wanted, bytes.length);
  for (let i = 0; i < MAX_CONTINUATIONS && ((bytes[end] ?? 0) & 0xc0) === 0x80; i++) end--;
  return end;
}
