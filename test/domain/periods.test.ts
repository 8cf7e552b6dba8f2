import fc from "fast-check";
import { expect, test } from "vitest";
import {
  monthStart,
  type Period,
  periodStarts,
  QUARTER_MS,
  type Quarter,
  TimeZone,
  timeZoneOf,
} from "../../src/domain/periods.ts";
import { turnsOf } from "../support/turns.ts";
import { words } from "../support/words.ts";

const quarter = (time: string) => Date.parse(time) / QUARTER_MS;
const time = (start: number) => new Date(start * QUARTER_MS).toISOString().slice(0, 16);

async function starts(tz: string, period: Period, from: string, to: string): Promise<string[] | undefined> {
  const range = { from: quarter(`${from}Z`), to: quarter(`${to}Z`) };
  return (await periodStarts(timeZoneOf(tz), period, range, 1_000))?.map(time);
}

/** The wall clock by Intl: milliseconds since 1970 as if it were UTC. */
function wallClockOf(timeZone: string): (quarter: Quarter) => number {
  const format = new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" });
  return (at) => Date.parse(`${format.format(at * QUARTER_MS).replace(" ", "T")}Z`);
}

test.each([
  // Berlin: clocks go forward on 29 March 2026, back on 25 October 2026, at 01:00 UTC.
  ["Europe/Berlin", "day", "2026-03-31T00:00", "2026-03-27T23:00 2026-03-28T23:00 2026-03-29T22:00 2026-03-30T22:00"],
  ["Europe/Berlin", "day", "2026-10-27T00:00", "2026-10-23T22:00 2026-10-24T22:00 2026-10-25T23:00 2026-10-26T23:00"],
  ["Europe/Berlin", "hour", "2026-10-25T03:00", "2026-10-25T00:00 2026-10-25T01:00 2026-10-25T02:00"],
  ["Europe/Berlin", "month", "2026-05-02T00:00", "2026-03-15T00:00 2026-03-31T22:00 2026-04-30T22:00"],
  ["America/New_York", "day", "2026-11-03T00:00", "2026-10-31T04:00 2026-11-01T04:00 2026-11-02T05:00"],
  ["Asia/Kolkata", "day", "2026-01-03T00:00", "2026-01-01T00:00 2026-01-01T18:30 2026-01-02T18:30"],
  ["Asia/Kolkata", "hour", "2026-01-01T02:00", "2026-01-01T00:00 2026-01-01T00:30 2026-01-01T01:30"],
  ["Asia/Kathmandu", "day", "2026-01-03T00:00", "2026-01-01T18:15 2026-01-02T18:15"],
  ["UTC", "month", "2026-03-01T00:00", "2026-01-01T00:00 2026-02-01T00:00"],
  // Lord Howe sets its clock by half an hour: at 02:00 (15:00 UTC) back to 01:30.
  ["Australia/Lord_Howe", "hour", "2026-04-04T17:00", "2026-04-04T14:00 2026-04-04T15:00 2026-04-04T15:30 2026-04-04T16:30"],
  // Beirut goes forward at midnight, so that the day starts at 01:00.
  ["Asia/Beirut", "day", "2026-03-30T00:00", "2026-03-27T22:00 2026-03-28T22:00 2026-03-29T21:00"],
  // Havana goes back from 01:00 to 00:00: the day starts at the first midnight.
  ["America/Havana", "day", "2026-11-03T00:00", "2026-10-31T04:00 2026-11-01T04:00 2026-11-02T05:00"],
  // Samoa skipped 30 December 2011.
  ["Pacific/Apia", "day", "2012-01-01T00:00", "2011-12-29T10:00 2011-12-30T10:00 2011-12-31T10:00"],
] satisfies [string, Period, string, string][])("%s, by %s until %s: %s", async (tz, period, to, expected) => {
  expect((await starts(tz, period, expected.slice(0, 16), to))?.join(" ")).toBe(expected);
});

test.each([
  // A month of 31 days in which the clocks go back is an hour longer.
  ["Europe/Berlin", "2026-10-31T22:45", "2026-09-30T22:00"],
  ["Europe/Berlin", "2026-10-31T23:00", "2026-10-31T23:00"],
  ["America/New_York", "2026-12-01T04:45", "2026-11-01T04:00"],
  ["UTC", "2026-03-01T00:00", "2026-03-01T00:00"],
  ["UTC", "2026-02-28T23:45", "2026-02-01T00:00"],
  ["Asia/Kathmandu", "2026-11-22T20:30", "2026-10-31T18:15"],
  ["Pacific/Kiritimati", "2026-11-22T20:30", "2026-10-31T10:00"],
])("the month of the last quarter in %s before %s starts at %s", async (tz, at, expected) => {
  expect(time(await monthStart(timeZoneOf(tz), quarter(`${at}Z`)))).toBe(expected);
});

const ZONES = words(`
  Europe/Berlin America/New_York Asia/Kolkata Asia/Kathmandu Australia/Lord_Howe America/Havana Africa/Casablanca America/St_Johns
  Pacific/Chatham Pacific/Apia UTC
`);
const FIRST = quarter("2000-01-01T00:00Z");

const CENTURY = 100 * 365 * 96;

test("a period starts where the date or the hour of the wall clock changes, in every zone", async () => {
  const parts = { hour: 13, day: 10, month: 7 } as const;
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...ZONES),
      fc.constantFrom<Period>("hour", "day", "month"),
      fc.oneof(fc.nat(1_000_000), fc.nat(40 * CENTURY)),
      fc.nat(400),
      async (tz, period, start, length) => {
        const wallClock = wallClockOf(tz);
        const range = { from: FIRST + start, to: FIRST + start + length };
        const label = (at: number) => {
          const localMs = wallClock(at);
          const text = new Date(localMs).toISOString().slice(0, parts[period]);
          return period === "hour" ? `${text} ${localMs - at * QUARTER_MS}` : text;
        };
        const expected: number[] = [];
        for (let at = range.from; at < range.to; at++) {
          if (at === range.from || label(at) !== label(at - 1)) expected.push(at);
        }
        expect((await periodStarts(timeZoneOf(tz), period, range, 1_000)) ?? []).toEqual(expected);
      },
    ),
    { numRuns: 60 },
  );
});

test("the wall clock of every zone is known for centuries", async () => {
  const range = { from: FIRST, to: FIRST + 5 * CENTURY };
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...Intl.supportedValuesOf("timeZone")), fc.nat(1_000), async (tz, shift) => {
      const wallClock = wallClockOf(tz);
      const spans = await timeZoneOf(tz).spansOf(range);
      expect(spans.map(({ from }) => from)).toEqual([range.from, ...spans.slice(0, -1).map(({ to }) => to)]);
      for (const [i, { from, to, ahead }] of spans.entries()) {
        // Each end of a span, and the days between the ends of some.
        const days = i % 10 === 0 ? Array.from({ length: (to - from) / 96 }, (_, day) => from + day * 96) : [];
        for (const at of [from, to - 1, Math.min(from + shift, to - 1), ...days]) {
          expect(wallClock(at) / QUARTER_MS - at).toBe(ahead);
        }
      }
    }),
    { numRuns: 2 },
  );
});

test("finding the changes of a zone lets other work run, and they are found once", async () => {
  const zone = new TimeZone("Antarctica/Troll");
  const range = { from: FIRST, to: quarter("2249-12-01T00:00Z") };
  const find = async () => expect(await periodStarts(zone, "month", range, 3_000)).toHaveLength(2_999);
  // Other code of this process may add a few.
  expect(await turnsOf(find)).toBeGreaterThanOrEqual(19);
  expect(await turnsOf(find)).toBeLessThan(10);
});

test("more periods than the maximum are not listed", async () => {
  const zone = timeZoneOf("Europe/Berlin");
  expect(await periodStarts(zone, "day", { from: 0, to: 96 * 3 }, 4)).toHaveLength(4);
  expect(await periodStarts(zone, "day", { from: 0, to: 96 * 3 }, 3)).toBeUndefined();
});

test("a name in any case is the same time zone, however many forms were used", () => {
  const zone = timeZoneOf("Pacific/Apia");
  const name = [..."america/argentina/buenos_aires"];
  for (let form = 0; form < 2_048; form++) {
    timeZoneOf(name.map((letter, i) => ((form >> i) & 1 ? letter.toUpperCase() : letter)).join(""));
  }
  expect(timeZoneOf("PACIFIC/apia")).toBe(zone);
  // In lower case, this is "Pacific/Kiritimati", but no name of a time zone.
  timeZoneOf("Pacific/Kiritimati");
  expect(() => timeZoneOf("Pacific/\u212airitimati")).toThrow("must be a time zone");
});

test.each(["Mars/Olympus", "+05:30", "", "Europe/Berlin\0", "../../etc/passwd", "Europe/", "A".repeat(64), "UTC+1", "GMT 1"])(
  "%j is refused as a time zone",
  (tz) => {
    expect(() => timeZoneOf(tz)).toThrow("tz: must be a time zone of the IANA database");
  },
);
