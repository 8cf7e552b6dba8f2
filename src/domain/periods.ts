import { DomainError } from "./errors.ts";
import { nextTurn } from "./fairness.ts";

/** Quarters of an hour since 1970: days of all time zones consist of whole ones. */
export type Quarter = number;

/** The end is exclusive. */
export type QuarterRange = { readonly from: Quarter; readonly to: Quarter };

export const QUARTER_MS = 15 * 60_000;

export type Period = "hour" | "day" | "month";

const QUARTERS = { hour: 4, day: 96 };
/** No period is longer: a clock can be set back. */
const MAX_QUARTERS = { hour: 4, day: 2 * 96, month: 32 * 96 };

/**
 * The first quarters of the periods of a range: `from`, then each later start of an hour, day or month in the time zone.
 * Undefined if there are more than `max`. A period starts where the date or the hour of the wall clock changes; an hour also
 * starts where the clock is set.
 */
export async function periodStarts(
  zone: TimeZone,
  period: Period,
  range: QuarterRange,
  max: number,
): Promise<Quarter[] | undefined> {
  if ((range.to - range.from) / MAX_QUARTERS[period] > max) return undefined;
  const starts: Quarter[] = [];
  let before: { readonly ahead: number; readonly index: number } | undefined;
  for (const { from, to, ahead } of await zone.spansOf(range)) {
    let index = indexOf(period, from + ahead);
    const isSet = period === "hour" && ahead !== before?.ahead;
    if (isSet || index !== before?.index) starts.push(from);
    for (let at = startOf(period, ++index) - ahead; at < to; at = startOf(period, ++index) - ahead) {
      if (starts.push(at) > max) return undefined;
    }
    before = { ahead, index: indexOf(period, to - 1 + ahead) };
  }
  return starts.length > max ? undefined : starts;
}

export async function monthStart(zone: TimeZone, quarter: Quarter): Promise<Quarter> {
  const range = { from: quarter - MAX_QUARTERS.month, to: quarter + 1 };
  return (await periodStarts(zone, "month", range, 3))?.at(-1) ?? quarter;
}

/** The number of a period since 1970 by the wall clock. */
function indexOf(period: Period, local: Quarter): number {
  if (period !== "month") return Math.floor(local / QUARTERS[period]);
  const date = new Date(local * QUARTER_MS);
  return (date.getUTCFullYear() - 1970) * 12 + date.getUTCMonth();
}

function startOf(period: Period, index: number): Quarter {
  return period === "month" ? Date.UTC(1970, index) / QUARTER_MS : index * QUARTERS[period];
}

/** Months are numbers: since January 1970. */
export function monthText(month: number): string {
  return `${1970 + Math.floor(month / 12)}-${String((month % 12) + 1).padStart(2, "0")}`;
}

/** Undefined if the text is not a month such as 2030-01. */
export function parseMonth(text: string): number | undefined {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(text) ?? [];
  if (year === undefined || Number(year) < 1970) return undefined;
  return (Number(year) - 1970) * 12 + Number(month) - 1;
}

/** A part of a range, in which the local time is ahead of UTC by a constant number of quarters. */
export type Span = QuarterRange & { readonly ahead: number };

/** An offset from UTC, and the quarter of its year from which it applies. */
type Offset = { readonly from: number; readonly ahead: number };

type AheadAt = (quarter: Quarter) => number;

/** Names of the IANA database. Without this, Intl would also accept offsets such as "+05:30". */
const NAME = /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/;
/** Since 2000, clocks were changed at most once in this time: at least a week is between two changes. */
const SEARCH_QUARTERS = 6 * 96;
/** Finding the changes of this many years takes up to two milliseconds. */
const YEARS_PER_TURN = 6;
/** The database lists the changes of each year until 2087. After it, changes depend on the calendar of the year alone. */
const LAST_LISTED_YEAR = 2100;

/** The calendars of years repeat after 28 years, within a century. */
const calendarYears = new Map(
  Array.from({ length: 28 }, (_, i) => LAST_LISTED_YEAR + 28 - i).map((year) => [calendarOf(year), year]),
);

/** Zones by their names in lower case: callers may write them in any case. The database has 600 names. */
const zones = new Map<string, TimeZone>();

/** A time zone by its name. The offsets that were found are kept, so that each is found once. */
export function timeZoneOf(name: string): TimeZone {
  const isName = NAME.test(name);
  const known = isName ? zones.get(name.toLowerCase()) : undefined;
  if (known) return known;
  const canonical = isName ? formatOf(name)?.resolvedOptions().timeZone : undefined;
  if (canonical === undefined) {
    throw DomainError.ofField("tz", 'must be a time zone of the IANA database, such as "Europe/Berlin"');
  }
  const zone = zones.get(canonical.toLowerCase()) ?? new TimeZone(canonical);
  zones.set(canonical.toLowerCase(), zone).set(name.toLowerCase(), zone);
  return zone;
}

export class TimeZone {
  readonly #name: string;
  /** At most 115 years: see calendarYear. */
  readonly #years = new Map<number, readonly Offset[]>();

  constructor(name: string) {
    this.#name = name;
  }

  /** The spans of a range, in order. Neighbours may have the same offset. */
  async spansOf({ from, to }: QuarterRange): Promise<readonly Span[]> {
    const [first, last] = [yearOf(from), yearOf(to)];
    await this.#load(first, last);
    const spans: Span[] = [];
    for (let year = first; year <= last; year++) {
      const start = startOfYear(year);
      const offsets = this.#years.get(calendarYear(year)) ?? [];
      for (const [i, { from: at, ahead }] of offsets.entries()) {
        const next = offsets[i + 1]?.from;
        const end = next === undefined ? startOfYear(year + 1) : start + next;
        const span = { from: Math.max(from, start + at), to: Math.min(to, end), ahead };
        if (span.from < span.to) spans.push(span);
      }
    }
    return spans;
  }

  async #load(first: number, last: number): Promise<void> {
    const years = new Set(Array.from({ length: last - first + 1 }, (_, i) => calendarYear(first + i)));
    const missing = [...years].filter((year) => !this.#years.has(year));
    if (missing.length === 0) return;
    // Not kept: it uses more memory than all offsets.
    const aheadAt = aheadIn(this.#name);
    for (const [i, year] of missing.entries()) {
      if (i % YEARS_PER_TURN === YEARS_PER_TURN - 1) await nextTurn();
      this.#years.set(year, offsetsOfYear(year, aheadAt));
    }
  }
}

function offsetsOfYear(year: number, aheadAt: AheadAt): readonly Offset[] {
  const [start, end] = [startOfYear(year), startOfYear(year + 1)];
  let ahead = aheadAt(start);
  const offsets: Offset[] = [{ from: 0, ahead }];
  for (let at = start; at < end - 1; ) {
    const next = Math.min(at + SEARCH_QUARTERS, end - 1);
    const aheadNext = aheadAt(next);
    if (aheadNext !== ahead) {
      offsets.push({ from: firstWithout(ahead, at, next, aheadAt) - start, ahead: aheadNext });
      ahead = aheadNext;
    }
    at = next;
  }
  return offsets;
}

/** The quarter from which the offset is another one: after `before`, and at `after` or earlier. */
function firstWithout(ahead: number, before: Quarter, after: Quarter, aheadAt: AheadAt): Quarter {
  let [low, high] = [before, after];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (aheadAt(middle) === ahead) low = middle;
    else high = middle;
  }
  return high;
}

/** The first year from 2101 on with the same days of the week and the same length; years before are unchanged. */
function calendarYear(year: number): number {
  return year <= LAST_LISTED_YEAR ? year : (calendarYears.get(calendarOf(year)) ?? year);
}

function calendarOf(year: number): number {
  return weekdayOf(year) * 7 + weekdayOf(year + 1);
}

function weekdayOf(year: number): number {
  return new Date(Date.UTC(year, 0)).getUTCDay();
}

function yearOf(quarter: Quarter): number {
  return new Date(quarter * QUARTER_MS).getUTCFullYear();
}

function startOfYear(year: number): Quarter {
  return Date.UTC(year, 0) / QUARTER_MS;
}

const LOCAL_TIME = /^(\d+)\/(\d+)\/(\d+), (\d+):(\d+)$/;

function aheadIn(timeZone: string): AheadAt {
  const format = formatOf(timeZone);
  if (!format) throw new Error(`the time zone ${timeZone} is unknown`);
  return (quarter) => {
    const [, month, day, year, hour, minute] = LOCAL_TIME.exec(format.format(quarter * QUARTER_MS)) ?? [];
    const localMs = Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute));
    return localMs / QUARTER_MS - quarter;
  };
}

function formatOf(timeZone: string): Intl.DateTimeFormat | undefined {
  try {
    return new Intl.DateTimeFormat("en-US", {
      timeZone,
      hourCycle: "h23",
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
      hour: "2-digit",
      minute: "2-digit",
    });
  } catch {
    return undefined;
  }
}
