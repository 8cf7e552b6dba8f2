import { WireType } from "@bufbuild/protobuf/wire";
import { DomainError } from "../../domain/errors.ts";

/** Far below the limit of the stack, even in the decoder. */
const MAX_GROUP_LEVELS = 64;

/** Steps over the bytes of a protobuf message without decoding them. */
export class Cursor {
  readonly #bytes: Uint8Array;
  #end: number;
  at: number;

  constructor(bytes: Uint8Array, start = 0, end = bytes.length) {
    this.#bytes = bytes;
    this.at = start;
    this.#end = end;
  }

  get isAtEnd(): boolean {
    return this.at >= this.#end;
  }

  /** A number of up to 32 bits: a tag or a length. */
  uint32(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (value > 0xffffffff) break;
        return value;
      }
    }
    throw malformed();
  }

  /** Skips a value. No field here is a group, but an unknown field may be one. */
  skip(wireType: number, levels = 0): void {
    if (wireType === WireType.Varint) this.#varint();
    else if (wireType === WireType.Bit64) this.#forward(8);
    else if (wireType === WireType.Bit32) this.#forward(4);
    else if (wireType === WireType.LengthDelimited) this.#forward(this.uint32());
    else if (wireType === WireType.StartGroup && levels < MAX_GROUP_LEVELS) this.#skipGroup(levels + 1);
    else throw malformed();
  }

  /** The end of a run of bytes of that length, which must lie within the message. */
  endOf(length: number): number {
    const end = this.at + length;
    if (end > this.#end) throw malformed();
    return end;
  }

  /** The decoder checks that the number of the end is that of the start. */
  #skipGroup(levels: number): void {
    for (;;) {
      const wireType = this.uint32() & 7;
      if (wireType === WireType.EndGroup) return;
      this.skip(wireType, levels);
    }
  }

  #forward(length: number): void {
    this.at = this.endOf(length);
  }

  #varint(): void {
    for (let i = 0; i < 10; i++) if (this.#byte() < 0x80) return;
    throw malformed();
  }

  #byte(): number {
    if (this.at >= this.#end) throw malformed();
    return this.#bytes[this.at++] as number;
  }
}

export function malformed(): DomainError {
  return new DomainError("invalid_argument", { message: "The message is not valid protobuf." });
}
