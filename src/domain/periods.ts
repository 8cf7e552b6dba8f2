import { QUARTER_MS, type Quarter, type QuarterRange } from "./quarter.ts";
import type { TimeZone } from "./time-zone.ts";

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

/** The first quarter of the month of a quarter. */
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
