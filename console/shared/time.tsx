import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampDate } from "@bufbuild/protobuf/wkt";

/** The time zone of the viewer, as an IANA name. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

const LONG = new Intl.DateTimeFormat("en", { dateStyle: "long", timeStyle: "long" });
const SHORT = new Intl.DateTimeFormat("en", {
  year: "numeric",
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
});
const DAY = new Intl.DateTimeFormat("en", { year: "numeric", month: "short", day: "numeric" });
const DAY_OF_YEAR = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });

/** A time in the zone of the viewer; the title has the seconds and names the zone. */
export function Time({ at, none = "–" }: { readonly at: Timestamp | undefined; readonly none?: string }) {
  if (at === undefined) return <span class="muted">{none}</span>;
  const date = timestampDate(at);
  return (
    <time dateTime={date.toISOString()} title={LONG.format(date)}>
      {SHORT.format(date)}
    </time>
  );
}

export function longTimeText(at: Timestamp): string {
  return LONG.format(timestampDate(at));
}

/** "Nov 22, 2026" */
export function dayText(date: Date): string {
  return DAY.format(date);
}

/** "Nov 22" */
export function shortDayText(date: Date): string {
  return DAY_OF_YEAR.format(date);
}

/** Names the zone that all times of a page use. */
export function ZoneNote() {
  return <p class="muted small">Times are in your time zone, {ZONE}.</p>;
}
