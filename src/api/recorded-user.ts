import { createHash } from "node:crypto";
import { charactersOf } from "../domain/characters.ts";

const MAX_USER_CHARACTERS = 128;

/** The end user as the ledger records it: an id that is too long is replaced by its SHA-256. */
export function recordedUser(user: string): string {
  if (charactersOf(user) <= MAX_USER_CHARACTERS) return user;
  return createHash("sha256").update(user).digest("hex");
}
