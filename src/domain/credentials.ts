import { hash } from "node:crypto";
import { crc32 } from "node:zlib";
import { LANE_COUNT, type Lane } from "./lane.ts";

/** Secret scanners look for this prefix. */
export const KEY_PREFIX = "vx_live_";

/** After the prefix, every key and token has 26 characters of base 62 and six that are the checksum of all before them. */
const BODY_LENGTH = 26;
const CHECKSUM_LENGTH = 6;
const REST = `[0-9A-Za-z]{${BODY_LENGTH + CHECKSUM_LENGTH}}`;

/** Characters 5 and 6, after the visible start, are the lane in base 62. */
const LANE_AT = 4;

const SHAPE = new RegExp(`^${KEY_PREFIX}${REST}$`);

export type NewKey = {
  /** The full key: returned to its owner once and never stored. */
  readonly secret: string;
  /** SHA-256 of the full key, in hex. */
  readonly fingerprint: string;
  readonly visibleStart: string;
  readonly visibleEnd: string;
};

/** Generates a key for the lane: 24 random characters, about 142 bits. */
export function generateKey(lane: Lane, randomBytes: (size: number) => Uint8Array): NewKey {
  const random = drawBase62(BODY_LENGTH - 2, randomBytes);
  const laneCharacters = BASE62.charAt(Math.floor(lane / 62)) + BASE62.charAt(lane % 62);
  const body = random.slice(0, LANE_AT) + laneCharacters + random.slice(LANE_AT);
  const secret = withChecksum(KEY_PREFIX + body);
  return {
    secret,
    fingerprint: fingerprintOf(secret),
    visibleStart: body.slice(0, 4),
    visibleEnd: secret.slice(-4),
  };
}

export function laneOfKey(secret: string): Lane {
  const at = KEY_PREFIX.length + LANE_AT;
  return BASE62.indexOf(secret.charAt(at)) * 62 + BASE62.indexOf(secret.charAt(at + 1));
}

/**
 * Whether the text has the form and the checksum of a key. A mistyped or invented key is rejected without a
 * lookup.
 */
export function isWellFormedKey(text: string): boolean {
  return SHAPE.test(text) && hasChecksum(text) && laneOfKey(text) < LANE_COUNT;
}

export function fingerprintOf(secret: string): string {
  return hash("sha256", secret, "hex");
}

const FULL_KEYS = new RegExp(`${KEY_PREFIX}(?=(${REST}))`, "g");

/** Secret scanners look for this prefix. */
const OPERATOR_PREFIX = "vxo_";

const FULL_TOKENS = new RegExp(`${OPERATOR_PREFIX}(?=(${REST}))`, "g");

/** The start of the cookie of a session of the console. */
const SESSION_PREFIX = "vxs_";

/** More of a key than may be shown: a masked key has four characters and an ellipsis after the prefix. */
const PARTS_OF_KEYS = new RegExp(`(${KEY_PREFIX}|${OPERATOR_PREFIX}|${SESSION_PREFIX})[0-9A-Za-z]{5,}`, "g");

/** The start of the secret of a webhook, and what of it may not be shown: base64, possibly in JSON or in a URL. */
const WEBHOOK_PREFIX = "whsec_";
const PARTS_OF_WEBHOOK_SECRETS = new RegExp(`${WEBHOOK_PREFIX}[0-9A-Za-z+/=\\\\%]{5,}`, "g");

/** The prefixes from a character that base64 and prose rarely contain, so that long texts are searched fast. */
const KEY_MARK = KEY_PREFIX.slice(KEY_PREFIX.indexOf("_"));
const OPERATOR_MARK = OPERATOR_PREFIX.slice(OPERATOR_PREFIX.indexOf("_"));

/**
 * Whether the text contains a full key or operator token. A look-alike with a wrong checksum, as in examples, does not
 * count.
 */
export function containsKey(text: string): boolean {
  return (
    (text.includes(KEY_MARK) && hasMatch(text, FULL_KEYS, isWellFormedKey)) ||
    (text.includes(OPERATOR_MARK) && text.includes(OPERATOR_PREFIX) && hasMatch(text, FULL_TOKENS, isWellFormedOperatorToken))
  );
}

function hasMatch(text: string, form: RegExp, isWellFormed: (secret: string) => boolean): boolean {
  for (const [prefix, body] of text.matchAll(form)) if (isWellFormed(`${prefix}${body}`)) return true;
  return false;
}

/** Replaces any text that looks like a key, an operator token, a session or the secret of a webhook. */
export function redactKeys(text: string): string {
  const withoutSecrets = text.includes(WEBHOOK_PREFIX)
    ? text.replace(PARTS_OF_WEBHOOK_SECRETS, `${WEBHOOK_PREFIX}[redacted]`)
    : text;
  if (!text.includes(KEY_PREFIX) && !text.includes(OPERATOR_PREFIX) && !text.includes(SESSION_PREFIX)) return withoutSecrets;
  return withoutSecrets.replace(PARTS_OF_KEYS, "$1[redacted]");
}

/** The form in which a key may be shown. */
export function maskKey(visibleStart: string, visibleEnd: string): string {
  return `${KEY_PREFIX}${visibleStart}…${visibleEnd}`;
}

/** The masked form of a text that looks like a key, even with a wrong checksum; undefined for any other text. */
export function maskOfKey(text: string): string | undefined {
  if (!SHAPE.test(text)) return undefined;
  return maskKey(text.slice(KEY_PREFIX.length, KEY_PREFIX.length + 4), text.slice(-4));
}

const TOKEN_SHAPE = new RegExp(`^(?:${OPERATOR_PREFIX}|${SESSION_PREFIX})${REST}$`);

type RandomBytes = (size: number) => Uint8Array;

/** About 154 random bits. Returned once and never stored: the database has only its fingerprint. */
export function generateOperatorToken(randomBytes: RandomBytes): string {
  return withChecksum(OPERATOR_PREFIX + drawBase62(BODY_LENGTH, randomBytes));
}

/** The secret of a session, and of a link that starts one or makes somebody a member. */
export function generateSessionToken(randomBytes: RandomBytes): string {
  return withChecksum(SESSION_PREFIX + drawBase62(BODY_LENGTH, randomBytes));
}

/** Whether the text has the form and the checksum of a token. Any other text is rejected without a look-up. */
export function isWellFormedOperatorToken(text: string): boolean {
  return isWellFormedToken(OPERATOR_PREFIX, text);
}

export function isWellFormedSessionToken(text: string): boolean {
  return isWellFormedToken(SESSION_PREFIX, text);
}

function isWellFormedToken(prefix: string, text: string): boolean {
  return text.startsWith(prefix) && TOKEN_SHAPE.test(text) && hasChecksum(text);
}

/** Texts of base 62 with a checksum, of which keys and operator tokens are made. */

const BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

function drawBase62(length: number, randomBytes: (size: number) => Uint8Array): string {
  let text = "";
  while (text.length < length) {
    for (const byte of randomBytes(length)) {
      // 248 is the largest multiple of 62 that fits in a byte; larger bytes would bias the result.
      if (byte < 248 && text.length < length) text += BASE62.charAt(byte % 62);
    }
  }
  return text;
}

/** The text followed by its CRC-32 in base 62. */
function withChecksum(text: string): string {
  let value = crc32(text);
  let digits = "";
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    digits = BASE62.charAt(value % 62) + digits;
    value = Math.floor(value / 62);
  }
  return text + digits;
}

/** Whether the text ends with the checksum of the characters before it. Compares digits, because every call has a key. */
function hasChecksum(text: string): boolean {
  let value = crc32(text.slice(0, -CHECKSUM_LENGTH));
  for (let i = 1; i <= CHECKSUM_LENGTH; i++) {
    if (text.charCodeAt(text.length - i) !== BASE62.charCodeAt(value % 62)) return false;
    value = Math.floor(value / 62);
  }
  return true;
}
