import type { Timestamp } from "@bufbuild/protobuf/wkt";
import { timestampDate } from "@bufbuild/protobuf/wkt";

/** The time zone of the viewer, as an IANA name. */
export const ZONE = Intl.DateTimeFormat().resolvedOptions().timeZone;

const LONG = new Intl.DateTimeFormat("en", { dateStyle: "long", timeStyle: "long" });
const SECOND = {
  month: "short",
  day: "numeric",
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
  hourCycle: "h23",
} as const;
const THIS_YEAR = new Intl.DateTimeFormat("en", SECOND);
const OTHER_YEAR = new Intl.DateTimeFormat("en", { ...SECOND, year: "numeric" });
const DAY = new Intl.DateTimeFormat("en", { year: "numeric", month: "short", day: "numeric" });
const DAY_OF_YEAR = new Intl.DateTimeFormat("en", { month: "short", day: "numeric" });

/** A time in the zone of the viewer; the title names the zone. */
export function Time({ at, none = "–" }: { readonly at: Timestamp | undefined; readonly none?: string }) {
  if (at === undefined) return <span class="muted">{none}</span>;
  const date = timestampDate(at);
  return (
    <time class="time" dateTime={date.toISOString()} title={LONG.format(date)}>
      {(date.getFullYear() === new Date().getFullYear() ? THIS_YEAR : OTHER_YEAR).format(date)}
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

/** "Nov 22, 2026, 09:00" */
export function hourText(date: Date): string {
  return `${dayText(date)}, ${isoMinute(date).slice(11)}`;
}

/** "09:00", and "Nov 22" at midnight */
export function shortHourText(date: Date): string {
  return date.getHours() === 0 ? shortDayText(date) : isoMinute(date).slice(11);
}

/** "2026-11-22", in the zone of the viewer. */
export function isoDay(date: Date): string {
  const two = (number: number) => number.toString().padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}

/** "2026-11-22T09:30", in the zone of the viewer, as fields of forms have it. */
export function isoMinute(date: Date): string {
  return `${isoDay(date)}T${date.toTimeString().slice(0, 5)}`;
}

/** Names the zone that all times of a page use. */
export function ZoneNote() {
  return <p class="muted small">Times are in your time zone, {ZONE}.</p>;
}
