import { randomUUID } from "node:crypto";
import { typeidUnboxed } from "typeid-js";
import { type Lane, withLane } from "./lane.ts";

/** Ids of listed things sort by their creation time, which page tokens rely on. */
export type Ids = {
  account(): string;
  /** What belongs to an account has the account's lane in its id, so the id alone tells where its row is. */
  key(lane: Lane): string;
  entry(lane: Lane): string;
  generation(lane: Lane): string;
  request(): string;
};

export const typeIds: Ids = {
  account: () => typeidUnboxed("acct"),
  key: (lane) => withLane(typeidUnboxed("key"), lane),
  entry: (lane) => withLane(typeidUnboxed("led"), lane),
  generation: (lane) => withLane(typeidUnboxed("gen"), lane),
  // One for every call: taken from the pool of random bytes that Node keeps for UUIDs.
  request: () => `req_${randomUUID().replaceAll("-", "")}`,
};

const BASE32 = "0123456789abcdefghjkmnpqrstvwxyz";
const TIME_CHARS = 10;

/** When an id was made, in seconds since 1970: the first characters after its prefix are the milliseconds. */
export function secondsOfId(id: string): number {
  return Math.floor(millisecondsOfId(id) / 1000);
}

/** The month in which an id was made, in months since January 1970. */
export function monthOfId(id: string): number {
  const time = new Date(millisecondsOfId(id));
  return (time.getUTCFullYear() - 1970) * 12 + time.getUTCMonth();
}

/** The ledger row of a generation. */
export function entryIdOf(generationId: string): string {
  return generationId.replace(/^gen_/, "led_");
}

function millisecondsOfId(id: string): number {
  const start = id.indexOf("_") + 1;
  let ms = 0;
  for (let at = start; at < start + TIME_CHARS; at++) ms = ms * BASE32.length + BASE32.indexOf(id.charAt(at));
  return ms;
}
