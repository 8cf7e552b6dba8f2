import type { TimeZone } from "./time-zone.ts";

/** Quarters of an hour since 1970: days of all time zones consist of whole ones. */
export type Quarter = number;

export const QUARTER_MS = 15 * 60_000;

export type Period = "hour" | "day" | "month";

/**
 * The first quarters of the periods of a range: `from`, then each later start of an hour, day or month in the time zone.
 * Undefined if there are more than `max`.
 */
export function periodStarts(
  zone: TimeZone,
  period: Period,
  range: { readonly from: Quarter; readonly to: Quarter },
  max: number,
): Quarter[] | undefined {
  const starts: Quarter[] = [];
  for (let start = range.from; start < range.to; start = nextStart(zone, period, start)) {
    if (starts.length === max) return undefined;
    starts.push(start);
  }
  return starts;
}

/** The first quarter of the month of a quarter. */
export function monthStart(zone: TimeZone, quarter: Quarter): Quarter {
  const local = new Date(zone.localMs(quarter * QUARTER_MS));
  // Earlier than the start of the month in every time zone, and after the start of the month before.
  const before = Date.UTC(local.getUTCFullYear(), local.getUTCMonth(), -1);
  return nextStart(zone, "month", before / QUARTER_MS);
}

function nextStart(zone: TimeZone, period: Period, start: Quarter): Quarter {
  const startMs = start * QUARTER_MS;
  const localMs = zone.localMs(startMs);
  const localNextMs = nextLocalStart(period, localMs);
  // The next start if the clock does not change until then.
  const expectedMs = startMs + localNextMs - localMs;
  const shiftMs = zone.localMs(expectedMs) - localNextMs;
  if (shiftMs === 0) return expectedMs / QUARTER_MS;
  // The clock changes in this period. A period ends where the date or hour of the clock changes; an hour also ends where
  // the clock is set.
  const sameLabel = (ms: number) => nextLocalStart(period, zone.localMs(ms)) === localNextMs;
  const offsetMs = localMs - startMs;
  const isSamePeriod = (ms: number) =>
    sameLabel(ms) && (period !== "hour" || zone.localMs(ms) - ms === offsetMs);
  let ms = Math.max(startMs + QUARTER_MS, expectedMs - Math.max(shiftMs, 0));
  while (isSamePeriod(ms)) ms += QUARTER_MS;
  return ms / QUARTER_MS;
}

/** The next start of a period by the wall clock. */
function nextLocalStart(period: Period, localMs: number): number {
  const local = new Date(localMs);
  const [year, month, day] = [local.getUTCFullYear(), local.getUTCMonth(), local.getUTCDate()];
  if (period === "month") return Date.UTC(year, month + 1);
  if (period === "day") return Date.UTC(year, month, day + 1);
  return Date.UTC(year, month, day, local.getUTCHours() + 1);
}
