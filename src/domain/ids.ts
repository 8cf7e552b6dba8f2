import { randomUUID } from "node:crypto";
import { fromString, toUUID, typeid } from "typeid-js";
import { type Lane, laneOfId } from "./lane.ts";

/** Ids of what is listed sort by the time they were made at, which is what page tokens rely on. */
export type Ids = {
  account(): string;
  /** Falls into the lane of its account, so the id alone says where the key is. */
  key(lane: Lane): string;
  entry(): string;
  generation(): string;
  request(): string;
};

export const typeIds: Ids = {
  account: () => typeid("acct").toString(),
  key: (lane) => {
    for (;;) {
      const id = typeid("key").toString();
      if (laneOfId(id) === lane) return id;
    }
  },
  entry: () => typeid("led").toString(),
  generation: () => typeid("gen").toString(),
  // Drawn for every call: from the pool of random bytes that Node keeps for UUIDs.
  request: () => `req_${randomUUID().replaceAll("-", "")}`,
};

/** When an id was made, in seconds since 1970: its first 48 bits are the milliseconds. */
export function secondsOfId(id: string): number {
  const uuid = toUUID(fromString(id));
  return Math.floor(Number.parseInt(uuid.replace("-", "").slice(0, 12), 16) / 1000);
}
