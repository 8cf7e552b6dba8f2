import { BASE32 } from "./lane.ts";
import { takeRandomBytes } from "./random-bytes.ts";

const DIGITS = Buffer.from(BASE32, "latin1");
const CHARS = 26;
/** The position after the version and the sequence. */
const RANDOM_START = 17;
const MAX_FIRST_SEQUENCE = 0x0fffffff;

/** If the clock steps back by less, ids keep the last time until the clock catches up. */
const MAX_STEP_BACK_MS = 60_000;

/**
 * TypeIDs: UUIDs of version 7 in base 32 (https://github.com/jetify-com/typeid). The library typeid-js takes nine times as
 * long, see docs/decisions/0008-where-the-time-goes.md.
 */
export class TypeIdSource {
  readonly #now: () => number;
  readonly #suffix = Buffer.alloc(CHARS);
  #ms = 0;
  /** Random at the start of each millisecond, then counted up, so that the ids of a millisecond sort as well. */
  #sequence = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  next(prefix: string): string {
    const now = this.#now();
    if (now > this.#ms || now < this.#ms - MAX_STEP_BACK_MS) {
      this.#ms = now;
      this.#write(Math.floor(now / 2 ** 25), 0, 5);
      this.#write(now % 2 ** 25, 5, 10);
      this.#sequence = takeRandomBytes(4).readUInt32LE() & MAX_FIRST_SEQUENCE;
    } else {
      this.#sequence++;
    }
    this.#writeSequence(this.#sequence);
    const random = takeRandomBytes(CHARS - RANDOM_START);
    for (let i = 0; i < random.length; i++)
      this.#write(random[i] as number, RANDOM_START + i, RANDOM_START + i + 1);
    return `${prefix}_${this.#suffix.toString("latin1")}`;
  }

  /** Four bits are the version, 12 of the sequence follow, then two bits are the variant, and 17 of the sequence follow. */
  #writeSequence(sequence: number): void {
    this.#write((0b0111 << 11) | (sequence >>> 18), 10, 13);
    this.#write((((sequence >>> 17) & 1) << 4) | 0b01000 | ((sequence >>> 15) & 0b11), 13, 14);
    this.#write(sequence & 0x7fff, 14, RANDOM_START);
  }

  /** The lowest digits of the value, the most significant first. */
  #write(value: number, start: number, end: number): void {
    let rest = value;
    for (let at = end - 1; at >= start; at--) {
      this.#suffix[at] = DIGITS[rest & 31] as number;
      rest >>>= 5;
    }
  }
}
