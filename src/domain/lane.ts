import { hash } from "node:crypto";

/** The unit of locking, batching and distribution. */
export type Lane = number;

export const LANE_COUNT = 64;

/** The lane of an account, or of a key by its id; the database checks the same rule. */
export function laneOfId(id: string): Lane {
  return laneOfFingerprint(hash("sha256", id, "hex"));
}

/** The lane of a key by the hex form of its fingerprint. */
export function laneOfFingerprint(fingerprint: string): Lane {
  return Number.parseInt(fingerprint.slice(0, 2), 16) & (LANE_COUNT - 1);
}
