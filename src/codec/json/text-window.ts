import { isUtf8 } from "node:buffer";
import { RestProblem } from "../problem.ts";

/** What is decoded at once. */
const WINDOW_BYTES = 1_048_576;

/** What a character of UTF-8 has at most beyond its first byte. */
const MAX_CONTINUATIONS = 3;

/** A large text that is never there as a whole: what is decoded is a window of it, which moves on as it is read. */
export class TextWindow {
  readonly #bytes: Buffer;
  /** How many of the bytes the window and all before it have. */
  #end = 0;
  /** How much text stood before the window. */
  #before = 0;
  readonly #aheadUnits: number;
  readonly #keptUnits: number;

  protected text = "";
  /** Where in the window to read on. */
  protected at = 0;
  /** The place from which on the text is still needed, though it was read; not more of it than `keptUnits`. */
  protected keptFrom: number | undefined;

  /** Beyond the place to read on, `aheadUnits` can be read after each call of lookAhead. */
  constructor(bytes: Buffer, aheadUnits: number, keptUnits: number) {
    const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
    this.#bytes = hasMark ? bytes.subarray(3) : bytes;
    this.#aheadUnits = aheadUnits;
    this.#keptUnits = keptUnits;
    this.#moveOn();
  }

  /** Where to read on, in the whole text. */
  protected get place(): number {
    return this.#before + this.at;
  }

  /** Whether the window reaches to the end of the text. */
  protected get isLast(): boolean {
    return this.#end >= this.#bytes.length;
  }

  protected lookAhead(): void {
    while (!this.isLast && this.text.length - this.at < this.#aheadUnits) this.#moveOn();
  }

  /** What was read since that place, which was kept. */
  protected since(place: number): string {
    return this.text.slice(place - this.#before, this.at);
  }

  /** Forgets what was read, and decodes more. */
  #moveOn(): void {
    const end = endOfCharacter(this.#bytes, this.#end + WINDOW_BYTES);
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

/** There, or before the character in the middle of which that is. */
function endOfCharacter(bytes: Buffer, wanted: number): number {
  let end = Math.min(wanted, bytes.length);
  for (let i = 0; i < MAX_CONTINUATIONS && ((bytes[end] ?? 0) & 0xc0) === 0x80; i++) end--;
  return end;
}
