import { endianness } from "node:os";

/** Checking a slice of this size takes a tenth of a millisecond. */
export const BASE64_SLICE = 1_048_576;

/** Receives the bytes of the checked slice; nothing reads them. */
const decoded = Buffer.allocUnsafeSlow((BASE64_SLICE / 4) * 3);

/**
 * Whether the slice of an ASCII text that starts there is base64 with padding. It refuses what decoders skip or guess:
 * other characters, missing padding, stray bits in the last character.
 */
export function isBase64Slice(text: string, start: number): boolean {
  const slice = text.slice(start, start + BASE64_SLICE);
  const padding = start + BASE64_SLICE >= text.length ? paddingOf(text) : 0;
  // A decoder skips characters that are not base64, so the number of bytes shows whether there are any.
  if (decoded.write(slice, "base64") !== (slice.length / 4) * 3 - padding) return false;
  // The decoder also accepts the characters of URL-safe base64.
  if (slice.includes("-") || slice.includes("_")) return false;
  const end = slice.slice(-4);
  return Buffer.from(end, "base64").toString("base64") === end;
}

export function base64Length(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

export function paddingOf(base64: string): number {
  return base64.endsWith("==") ? 2 : base64.endsWith("=") ? 1 : 0;
}

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
