import { CHECKSUM_LENGTH, checksumOf, drawBase62, hasChecksum } from "./base62.ts";

/** Secret scanners look for this prefix. */
export const OPERATOR_PREFIX = "vxo_";

/** About 190 random bits. */
const RANDOM_LENGTH = 32;
export const OPERATOR_BODY_LENGTH: number = RANDOM_LENGTH + CHECKSUM_LENGTH;
/** The start of the cookie of a session of the console. */
export const SESSION_PREFIX = "vxs_";
const BODY = new RegExp(`^[0-9A-Za-z]{${OPERATOR_BODY_LENGTH}}$`);

type RandomBytes = (size: number) => Uint8Array;

/** Returned once and never stored: the database has only its fingerprint. */
export function generateOperatorToken(randomBytes: RandomBytes): string {
  return generate(OPERATOR_PREFIX, randomBytes);
}

export function generateSessionToken(randomBytes: RandomBytes): string {
  return generate(SESSION_PREFIX, randomBytes);
}

/** Whether the text has the form and the checksum of a token. Any other text is rejected without a look-up. */
export function isWellFormedOperatorToken(text: string): boolean {
  return isWellFormed(OPERATOR_PREFIX, text);
}

export function isWellFormedSessionToken(text: string): boolean {
  return isWellFormed(SESSION_PREFIX, text);
}

function generate(prefix: string, randomBytes: RandomBytes): string {
  const random = drawBase62(RANDOM_LENGTH, randomBytes);
  return `${prefix}${random}${checksumOf(random)}`;
}

function isWellFormed(prefix: string, text: string): boolean {
  const body = text.slice(prefix.length);
  return text.startsWith(prefix) && BODY.test(body) && hasChecksum(body);
}
