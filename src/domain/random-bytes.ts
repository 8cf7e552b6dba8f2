import { randomFillSync } from "node:crypto";

/** Filled for many ids at once: a system call for each id would cost more than the rest of the id. */
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
