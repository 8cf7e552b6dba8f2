import { endianness } from "node:os";

const FLOAT_BYTES = 4;

/** The values as 32-bit floats with the least significant byte first, in base64. */
export function base64OfVector(vector: Float32Array): string {
  const bytes = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
  return (endianness() === "LE" ? bytes : Buffer.from(bytes).swap32()).toString("base64");
}

/** Undefined if the text does not encode whole, finite values. */
export function vectorOfBase64(base64: string): Float32Array | undefined {
  const bytes = Buffer.from(base64, "base64");
  if (bytes.length === 0 || bytes.length % FLOAT_BYTES !== 0) return undefined;
  if (endianness() !== "LE") bytes.swap32();
  // A small buffer is part of a shared one, at any offset.
  const vector = new Float32Array(Uint8Array.from(bytes).buffer);
  return vector.every(Number.isFinite) ? vector : undefined;
}
