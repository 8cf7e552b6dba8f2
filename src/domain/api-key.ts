import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import { LANE_COUNT, type Lane } from "./lane.ts";

/** Secret scanners look for this prefix. */
export const KEY_PREFIX = "vx_live_";

const ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LENGTH = 32;
const CHECKSUM_LENGTH = 6;
/** Characters 5 and 6, after the visible start, are the lane in base 62. */
const LANE_AT = 4;
const SHAPE = new RegExp(`^${KEY_PREFIX}[0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}$`);

export type NewKey = {
  /** The full key: returned to its owner once and never stored. */
  readonly secret: string;
  /** SHA-256 of the full key, in hex. */
  readonly fingerprint: string;
  readonly visibleStart: string;
  readonly visibleEnd: string;
};

/** Generates a key for the lane: 30 random characters, about 178 bits. */
export function generateKey(lane: Lane, randomBytes: (size: number) => Uint8Array): NewKey {
  const random = drawBase62(RANDOM_LENGTH - 2, randomBytes);
  const laneCharacters = ALPHABET.charAt(Math.floor(lane / 62)) + ALPHABET.charAt(lane % 62);
  const body = random.slice(0, LANE_AT) + laneCharacters + random.slice(LANE_AT);
  const secret = `${KEY_PREFIX}${body}${checksum(body)}`;
  return {
    secret,
    fingerprint: fingerprintOf(secret),
    visibleStart: body.slice(0, 4),
    visibleEnd: secret.slice(-4),
  };
}

/** The lane of a well-formed key. */
export function laneOfKey(secret: string): Lane {
  const at = KEY_PREFIX.length + LANE_AT;
  return ALPHABET.indexOf(secret.charAt(at)) * 62 + ALPHABET.indexOf(secret.charAt(at + 1));
}

/**
 * Whether the text has the form and the checksum of a key. A mistyped or invented key is rejected without a
 * lookup.
 */
export function isWellFormedKey(text: string): boolean {
  if (!SHAPE.test(text)) return false;
  const body = text.slice(KEY_PREFIX.length);
  return checksum(body.slice(0, RANDOM_LENGTH)) === body.slice(RANDOM_LENGTH) && laneOfKey(text) < LANE_COUNT;
}

export function fingerprintOf(secret: string): string {
  return hash("sha256", secret, "hex");
}

const FULL_KEYS = new RegExp(`${KEY_PREFIX}(?=([0-9A-Za-z]{${RANDOM_LENGTH + CHECKSUM_LENGTH}}))`, "g");
/** More of a key than may be shown: a masked key has four characters and an ellipsis after the prefix. */
const PARTS_OF_KEYS = new RegExp(`${KEY_PREFIX}[0-9A-Za-z]{5,}`, "g");

/**
 * Whether the text contains a full key. A look-alike with a wrong checksum, as in examples, does not count.
 */
export function containsKey(text: string): boolean {
  if (!text.includes(KEY_PREFIX)) return false;
  for (const [prefix, body] of text.matchAll(FULL_KEYS)) if (isWellFormedKey(`${prefix}${body}`)) return true;
  return false;
}

/** Replaces any text that looks like a key. */
export function redactKeys(text: string): string {
  return text.includes(KEY_PREFIX) ? text.replace(PARTS_OF_KEYS, `${KEY_PREFIX}[redacted]`) : text;
}

/** The form in which a key may be shown. */
export function maskKey(visibleStart: string, visibleEnd: string): string {
  return `${KEY_PREFIX}${visibleStart}…${visibleEnd}`;
}

function checksum(random: string): string {
  let value = crc32(random);
  let text = "";
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text = ALPHABET.charAt(value % 62) + text;
    value = Math.floor(value / 62);
  }
  return text;
}

function drawBase62(length: number, randomBytes: (size: number) => Uint8Array): string {
  let text = "";
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      // 248 is the largest multiple of 62 that fits in a byte; larger bytes would bias the result.
      if (byte < 248 && text.length < length) text += ALPHABET.charAt(byte % 62);
    }
  }
  return text;
}
