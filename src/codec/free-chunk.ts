/** A smaller chunk is left to the garbage collector. */
const MIN_FREED_BYTES = 8_192;

/**
 * Frees the memory of a chunk at once, if no other Buffer can share it: V8 collects the whole heap whenever a certain amount
 * of such memory was allocated. Nothing may refer to the bytes any more.
 */
export function freeChunk({ buffer, length }: Buffer): void {
  if (length >= MIN_FREED_BYTES && length === buffer.byteLength) (buffer as ArrayBuffer).transfer(0);
}
