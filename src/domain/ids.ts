import { BASE32, type Lane, withLane } from "./lane.ts";
import { takeRandomBytes } from "./random-bytes.ts";
import { TypeIdSource } from "./type-id-source.ts";

/** Ids of listed objects sort by creation time; page tokens depend on that. */
export type Ids = {
  account(): string;
  operator(): string;
  /** Ids of an account's objects contain the account's lane, so the id is enough to locate the row. */
  key(lane: Lane): string;
  entry(lane: Lane): string;
  generation(lane: Lane): string;
  request(): string;
};

const REQUEST_ID_BYTES = 16;

export function createIds(now: () => number): Ids {
  const typeIds = new TypeIdSource(now);
  return {
    account: () => typeIds.next("acct"),
    operator: () => typeIds.next("op"),
    key: (lane) => withLane(typeIds.next("key"), lane),
    entry: (lane) => withLane(typeIds.next("led"), lane),
    generation: (lane) => withLane(typeIds.next("gen"), lane),
    request: () => `req_${takeRandomBytes(REQUEST_ID_BYTES).toString("hex")}`,
  };
}

const TIME_CHARS = 10;

/**
 * Creation time of an id in seconds since 1970: the first characters after the prefix encode milliseconds.
 */
export function secondsOfId(id: string): number {
  return Math.floor(millisecondsOfId(id) / 1000);
}

/** The month of an id's creation, in months since January 1970. */
export function monthOfId(id: string): number {
  const time = new Date(millisecondsOfId(id));
  return (time.getUTCFullYear() - 1970) * 12 + time.getUTCMonth();
}

/** The id of a generation's ledger row. */
export function entryIdOf(generationId: string): string {
  return withPrefix("led", generationId);
}

/** The id that another API or table uses for the same generation: with another prefix, and the same suffix. */
export function withPrefix(prefix: string, id: string): string {
  return prefix + id.slice(id.indexOf("_"));
}

/** The id of the generation that a ledger row charges. */
export function generationIdOf(entryId: string): string {
  return entryId.replace(/^led_/, "gen_");
}

function millisecondsOfId(id: string): number {
  const start = id.indexOf("_") + 1;
  let ms = 0;
  for (let at = start; at < start + TIME_CHARS; at++) ms = ms * BASE32.length + BASE32.indexOf(id.charAt(at));
  return ms;
}
