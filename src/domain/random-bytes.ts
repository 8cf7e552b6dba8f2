import { randomFillSync } from "node:crypto";

/** Filled at once: a call of the operating system for each id costs more than the rest of the id. */
const pool = Buffer.alloc(8_192);
let position = pool.length;

/** Random bytes that are not used again. The caller reads them at once. */
export function takeRandomBytes(count: number): Buffer {
  if (position + count > pool.length) {
    randomFillSync(pool);
    position = 0;
  }
  const bytes = pool.subarray(position, position + count);
  position += count;
  return bytes;
}
