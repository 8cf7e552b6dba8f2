import { createHash } from "node:crypto";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import { DomainError } from "../domain/errors.ts";
import { charactersOf } from "../domain/text.ts";

const MAX_USER_CHARACTERS = 128;

/** The end user as the ledger records it: an id that is too long is replaced by its SHA-256. */
export function recordedUser(user: string): string {
  if (charactersOf(user) <= MAX_USER_CHARACTERS) return user;
  return createHash("sha256").update(user).digest("hex");
}

/** The time in a field. Accepts only times that both a timestamp message and PostgreSQL can hold. */
export function dateOf(field: string, timestamp: Timestamp | undefined): Date | undefined {
  if (timestamp === undefined) return undefined;
  const date = timestampDate(timestamp);
  if (!(date.getTime() >= 0 && date.getUTCFullYear() <= 9999)) {
    throw DomainError.ofField(field, "must be a time between the years 1970 and 9999");
  }
  return date;
}
