import { randomUUID } from "node:crypto";
import { typeidUnboxed } from "typeid-js";
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
  account: () => typeidUnboxed("acct"),
  key: (lane) => {
    for (;;) {
      const id = typeidUnboxed("key");
      if (laneOfId(id) === lane) return id;
    }
  },
  entry: () => typeidUnboxed("led"),
  generation: () => typeidUnboxed("gen"),
  // Drawn for every call: from the pool of random bytes that Node keeps for UUIDs.
  request: () => `req_${randomUUID().replaceAll("-", "")}`,
};

const BASE32 = "0123456789abcdefghjkmnpqrstvwxyz";
const TIME_CHARS = 10;

/** When an id was made, in seconds since 1970: the first characters behind its prefix are the milliseconds. */
export function secondsOfId(id: string): number {
  const start = id.indexOf("_") + 1;
  let ms = 0;
  for (let at = start; at < start + TIME_CHARS; at++) ms = ms * BASE32.length + BASE32.indexOf(id.charAt(at));
  return Math.floor(ms / 1000);
}
