/** The initial capacity; it doubles when it is full. */
const FIRST_BYTES = 8_192;

/**
 * The buffer grows to the announced length only if that is at most this many times the needed size: anyone can announce
 * 32 MiB and send one byte.
 */
const MAX_ANNOUNCED_FACTOR = 32;

/** A smaller buffer is left to the garbage collector. */
const MIN_FREED_BYTES = 262_144;

/** The memory that was allocated here for large bodies. */
const allocated = new WeakSet<ArrayBufferLike>();

/**
 * Frees the memory of gathered bytes at once, if it is large: V8 collects the whole heap whenever a certain amount of such
 * memory was allocated. Nothing may refer to the bytes any more.
 */
export function freeBytes({ buffer }: Buffer): void {
  if (allocated.has(buffer)) (buffer as ArrayBuffer).transfer(0);
}

/** Joins chunks in one buffer as they arrive: a peer may send them byte by byte. */
export class GatheredBytes {
  #buffer: Buffer | undefined;
  /** A single chunk is returned without a copy. */
  #only: Buffer | undefined;
  #size = 0;
  readonly #expected: number;

  /** Zero if the number of bytes is unknown. */
  constructor(expectedBytes: number) {
    this.#expected = expectedBytes;
  }

  get size(): number {
    return this.#size;
  }

  /** Returns whether the chunk was copied. */
  append(chunk: Buffer): boolean {
    if (this.#size === 0) {
      this.#only = chunk;
      this.#size = chunk.length;
      return false;
    }
    const needed = this.#size + chunk.length;
    if (this.#buffer === undefined || this.#buffer.length < needed) this.#grow(needed);
    chunk.copy(this.#buffer as Buffer, this.#size);
    this.#size = needed;
    return true;
  }

  bytes(): Buffer {
    return this.#only ?? this.#buffer?.subarray(0, this.#size) ?? Buffer.alloc(0);
  }

  /** Also frees the memory. */
  clear(): void {
    if (this.#buffer) freeBytes(this.#buffer);
    this.#buffer = undefined;
    this.#only = undefined;
    this.#size = 0;
  }

  #grow(needed: number): void {
    const announced = this.#expected <= MAX_ANNOUNCED_FACTOR * needed ? this.#expected : 0;
    const larger = Buffer.allocUnsafe(Math.max(needed, announced, FIRST_BYTES, 2 * this.#size));
    if (larger.length >= MIN_FREED_BYTES) allocated.add(larger.buffer);
    this.bytes().copy(larger);
    if (this.#buffer) freeBytes(this.#buffer);
    this.#buffer = larger;
    this.#only = undefined;
  }
}
