import { startOfDay } from "./days.ts";
import { Field } from "./field.tsx";
import { DayFilters } from "./filter-fields.tsx";
import { isoDay, isoMinute } from "./time.tsx";
import { changeParams } from "./use-route.ts";

/** Days in the zone of the viewer, both included. For a single hour, `from` has its time: "2026-11-22T09:00". */
export type Range = { readonly from: string; readonly to: string };

/** What the bars of a chart stand for. */
export type Periods = {
  readonly unit: "day" | "hour";
  readonly starts: readonly Date[];
  readonly end: Date;
};

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** With more days, the bars of the chart are too narrow. */
const MAX_DAYS = 366;
const MAX_DAYS_OF_HOURS = 3;
/** The default range. */
export const NORMAL_DAYS = 30;
const MONTHS = 12;

/** The last days, the given one included. */
export function lastDays(count: number, end = new Date()): Range {
  return {
    from: isoDay(new Date(end.getFullYear(), end.getMonth(), end.getDate() - count + 1)),
    to: isoDay(end),
  };
}

/** Days that the address does not name, or names wrongly, are the last ones. */
export function rangeOf(params: URLSearchParams, count = NORMAL_DAYS): Range {
  const end = startOfDay(params.get("to") ?? "", 0) ?? new Date();
  const to = isoDay(end);
  const from = params.get("from") ?? "";
  const day = from.slice(0, to.length);
  const start = startOfDay(day, 0);
  if (start === undefined || start > end || Number(end) - Number(start) >= MAX_DAYS * DAY_MS) return lastDays(count, end);
  return { from: day === to ? from : day, to };
}

/** The hours of a few days, or the days. */
export function periodsOf({ from, to }: Range): Periods {
  const end = startOfDay(to, 1) ?? new Date();
  const days: Date[] = [];
  for (let day = startOfDay(from.slice(0, to.length), 0) ?? end; day < end; ) {
    days.push(day);
    day = startOfDay(isoDay(day), 1) ?? end;
  }
  if (days.length > MAX_DAYS_OF_HOURS) return { unit: "day", starts: days, end };
  const hours: Date[] = [];
  for (let time = Number(days[0] ?? end); time < Number(end); time += HOUR_MS) hours.push(new Date(time));
  const hour = hours.find((start) => isoMinute(start) === from);
  if (hour === undefined) return { unit: "hour", starts: hours, end };
  return { unit: "hour", starts: [hour], end: new Date(Number(hour) + HOUR_MS) };
}

type RangeFieldsProps = { readonly section: string; readonly range: Range };

/** Selects the last days, a month, or any days. */
export function RangeFields({ section, range: { from, to } }: RangeFieldsProps) {
  const now = new Date();
  const recent = [1, 3, 7, 30, 90].map((count) => ({
    name: count === 1 ? "Today" : `Last ${count} days`,
    ...lastDays(count, now),
  }));
  const months = Array.from({ length: MONTHS }, (_, back) => {
    const last = new Date(now.getFullYear(), now.getMonth() - back + 1, 0);
    const end = isoDay(last < now ? last : now);
    return { name: end.slice(0, 7), from: `${end.slice(0, 7)}-01`, to: end };
  });
  const choices = [...recent, ...months];
  return (
    <>
      <Field label="Range">
        {(control) => (
          <select
            {...control}
            value={choices.find((one) => one.from === from && one.to === to)?.name ?? ""}
            onChange={(event) => {
              const chosen = choices.find(({ name }) => name === event.currentTarget.value);
              changeParams(section, { from: chosen?.from ?? "", to: chosen?.to ?? "" });
            }}
          >
            <option value="">Other days</option>
            {choices.map(({ name }) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        )}
      </Field>
      <DayFilters section={section} from={from.slice(0, to.length)} to={to} />
    </>
  );
}
