import { crc32 } from "node:zlib";

/** Texts of base 62 with a checksum, of which keys and operator tokens are made. */

export const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
export const CHECKSUM_LENGTH = 6;

export function drawBase62(length: number, randomBytes: (size: number) => Uint8Array): string {
  let text = "";
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      // 248 is the largest multiple of 62 that fits in a byte; larger bytes would bias the result.
      if (byte < 248 && text.length < length) text += BASE62.charAt(byte % 62);
    }
  }
  return text;
}

export function checksumOf(random: string): string {
  let value = crc32(random);
  let text = "";
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text = BASE62.charAt(value % 62) + text;
    value = Math.floor(value / 62);
  }
  return text;
}

/** Whether the text ends with the checksum of the characters before it. Compares digits, because every call has a key. */
export function hasChecksum(text: string): boolean {
  let value = crc32(text.slice(0, -CHECKSUM_LENGTH));
  for (let i = 1; i <= CHECKSUM_LENGTH; i++) {
    if (text.charCodeAt(text.length - i) !== BASE62.charCodeAt(value % 62)) return false;
    value = Math.floor(value / 62);
  }
  return true;
}
