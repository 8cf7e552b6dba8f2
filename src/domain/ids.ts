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

/**
 * Each cell has a clock, and the month of a ledger entry is that of its id.
 *
 * @param now the time of a cell in milliseconds since 1970
 * @param cellOf the cell of a lane
 */
export function createIds(now: (cell: number) => number, cellOf: (lane: Lane) => number = () => 0): Ids {
  const sources: TypeIdSource[] = [];
  const next = (prefix: string, cell: number) => {
    sources[cell] ??= new TypeIdSource(() => now(cell));
    return sources[cell].next(prefix);
  };
  const nextIn = (prefix: string, lane: Lane) => withLane(next(prefix, cellOf(lane)), lane);
  return {
    account: () => next("acct", 0),
    operator: () => next("op", 0),
    key: (lane) => nextIn("key", lane),
    entry: (lane) => nextIn("led", lane),
    generation: (lane) => nextIn("gen", lane),
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
