import { randomFillSync } from "node:crypto";
import { BASE32, LANE_COUNT, type Lane, laneOfId, withLane } from "./lane.ts";

/** Ids of listed objects sort by creation time; page tokens depend on that. */
export type Ids = {
  account(): string;
  operator(): string;
  person(): string;
  pageSession(): string;
  /** Of a person with an account. */
  link(): string;
  signUpInvitation(): string;
  /** Ids of an account's objects contain the account's lane, so the id is enough to locate the row. */
  key(lane: Lane): string;
  entry(lane: Lane): string;
  generation(lane: Lane): string;
  topUp(lane: Lane): string;
  failure(lane: Lane): string;
  /** The lane after the last one is for the limits of plans. */
  limit(lane: Lane): string;
  /** The lane after the last one is for the webhooks of operators. */
  webhook(lane: Lane): string;
  invitation(lane: Lane): string;
  request(): string;
};

const REQUEST_ID_BYTES = 16;

/**
 * Each cell has a clock, and the month of a ledger entry is that of its id.
 *
 * @param now the time of a cell in milliseconds since 1970
 * @param cellOf the cell of a lane
 * @param usableLanes the lanes in which accounts can be created now; none if all lanes are in one cell
 */
export function createIds(
  now: (cell: number) => number,
  cellOf: (lane: Lane) => number = () => 0,
  usableLanes: () => readonly Lane[] = () => [],
): Ids {
  const sources: TypeIdSource[] = [];
  const next = (prefix: string, cell: number) => {
    sources[cell] ??= new TypeIdSource(() => now(cell));
    return sources[cell].next(prefix);
  };
  const nextIn = (prefix: string, lane: Lane) => withLane(next(prefix, cellOf(lane)), lane);
  return {
    account: () => {
      const id = next("acct", 0);
      const [drawn, lanes] = [laneOfId(id), usableLanes()];
      return lanes.includes(drawn) ? id : withLane(id, lanes[drawn % lanes.length] ?? drawn);
    },
    operator: () => next("op", 0),
    person: () => next("usr", 0),
    pageSession: () => next("ses", 0),
    link: () => next("lnk", 0),
    signUpInvitation: () => next("sinv", 0),
    key: (lane) => nextIn("key", lane),
    entry: (lane) => nextIn("led", lane),
    generation: (lane) => nextIn("gen", lane),
    topUp: (lane) => nextIn("top", lane),
    failure: (lane) => nextIn("fail", lane),
    limit: (lane) => (lane === LANE_COUNT ? next("lim", 0) : nextIn("lim", lane)),
    webhook: (lane) => (lane === LANE_COUNT ? next("who", 0) : nextIn("wh", lane)),
    invitation: (lane) => nextIn("inv", lane),
    request: () => `req_${takeRandomBytes(REQUEST_ID_BYTES).toString("hex")}`,
  };
}

const ACCOUNT_ID = /^acct_[0-9a-z]{26}$/;

export function isAccountId(text: string): boolean {
  return ACCOUNT_ID.test(text);
}

const TIME_CHARS = 10;

/** Creation time of an id in seconds since 1970. */
export function secondsOfId(id: string): number {
  return Math.floor(millisecondsOfId(id) / 1000);
}

/** The month of an id's creation, in months since January 1970. */
export function monthOfId(id: string): number {
  const time = new Date(millisecondsOfId(id));
  return (time.getUTCFullYear() - 1970) * 12 + time.getUTCMonth();
}

/** The id of a generation has a prefix for each API: native, Responses and Messages. The rest is the same in all of them. */
export function isGenerationId(id: string): boolean {
  return /^(gen|resp|msg)_[0-9a-z]{26}$/.test(id);
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

/** Creation time of an id in milliseconds since 1970: the first characters after the prefix encode it. */
export function millisecondsOfId(id: string): number {
  const start = id.indexOf("_") + 1;
  let ms = 0;
  for (let at = start; at < start + TIME_CHARS; at++) ms = ms * BASE32.length + BASE32.indexOf(id.charAt(at));
  return ms;
}

/** An id that is lower than all ids of this time and higher than all earlier ones. */
export function lowestIdAt(prefix: string, ms: number): string {
  let time = "";
  for (let rest = ms; time.length < TIME_CHARS; rest = Math.floor(rest / BASE32.length))
    time = BASE32.charAt(rest % BASE32.length) + time;
  return `${prefix}_${time}${"0".repeat(CHARS - TIME_CHARS)}`;
}

const DIGITS = Buffer.from(BASE32, "latin1");
const CHARS = 26;
/** The position after the version and the sequence. */
const RANDOM_START = 17;
const MAX_FIRST_SEQUENCE = 0x0fffffff;

/** If the clock steps back by less, ids keep the last time until the clock catches up. */
const MAX_STEP_BACK_MS = 60_000;

/**
 * TypeIDs: UUIDs of version 7 in base 32 (https://github.com/jetify-com/typeid). The library typeid-js takes nine times as
 * long, see docs/decisions/0008-where-the-time-goes.md.
 */
class TypeIdSource {
  readonly #now: () => number;
  readonly #suffix = Buffer.alloc(CHARS);
  #ms = 0;
  /** Random at the start of each millisecond, then counted up, so that the ids of a millisecond sort as well. */
  #sequence = 0;

  constructor(now: () => number) {
    this.#now = now;
  }

  next(prefix: string): string {
    const now = this.#now();
    if (now > this.#ms || now < this.#ms - MAX_STEP_BACK_MS) {
      this.#ms = now;
      this.#write(Math.floor(now / 2 ** 25), 0, 5);
      this.#write(now % 2 ** 25, 5, 10);
      this.#sequence = takeRandomBytes(4).readUInt32LE() & MAX_FIRST_SEQUENCE;
    } else {
      this.#sequence++;
    }
    this.#writeSequence(this.#sequence);
    const random = takeRandomBytes(CHARS - RANDOM_START);
    for (let i = 0; i < random.length; i++) this.#write(random[i] as number, RANDOM_START + i, RANDOM_START + i + 1);
    return `${prefix}_${this.#suffix.toString("latin1")}`;
  }

  /** Four bits are the version, 12 of the sequence follow, then two bits are the variant, and 17 of the sequence follow. */
  #writeSequence(sequence: number): void {
    this.#write((0b0111 << 11) | (sequence >>> 18), 10, 13);
    this.#write((((sequence >>> 17) & 1) << 4) | 0b01000 | ((sequence >>> 15) & 0b11), 13, 14);
    this.#write(sequence & 0x7fff, 14, RANDOM_START);
  }

  /** The lowest digits of the value, the most significant first. */
  #write(value: number, start: number, end: number): void {
    let rest = value;
    for (let at = end - 1; at >= start; at--) {
      this.#suffix[at] = DIGITS[rest & 31] as number;
      rest >>>= 5;
    }
  }
}

/** Filled for many ids at once: a system call for each id would cost more than the rest of the id. */
const pool = Buffer.alloc(8_192);
let position = pool.length;

/** Random bytes that are not used again. The caller reads them at once. */
function takeRandomBytes(count: number): Buffer {
  if (position + count > pool.length) {
    randomFillSync(pool);
    position = 0;
  }
  const bytes = pool.subarray(position, position + count);
  position += count;
  return bytes;
}
