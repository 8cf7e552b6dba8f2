import { CHECKSUM_LENGTH, checksumOf, drawBase62, hasChecksum } from "./base62.ts";

/** Secret scanners look for this prefix. */
export const OPERATOR_PREFIX = "vxo_";

/** About 190 random bits. */
const RANDOM_LENGTH = 32;
export const OPERATOR_BODY_LENGTH: number = RANDOM_LENGTH + CHECKSUM_LENGTH;
const SHAPE = new RegExp(`^${OPERATOR_PREFIX}[0-9A-Za-z]{${OPERATOR_BODY_LENGTH}}$`);

/** Returned once and never stored: the database has only its fingerprint. */
export function generateOperatorToken(randomBytes: (size: number) => Uint8Array): string {
  const random = drawBase62(RANDOM_LENGTH, randomBytes);
  return `${OPERATOR_PREFIX}${random}${checksumOf(random)}`;
}

/** Whether the text has the form and the checksum of a token. Any other text is rejected without a look-up. */
export function isWellFormedOperatorToken(text: string): boolean {
  return SHAPE.test(text) && hasChecksum(text.slice(OPERATOR_PREFIX.length));
}
