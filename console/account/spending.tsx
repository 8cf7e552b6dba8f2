import { type Timestamp, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { Money, moneyText } from "../shared/money.tsx";
import { Stat } from "../shared/stat.tsx";
import { ZONE } from "../shared/time.tsx";
import { lastDays } from "../shared/usage.ts";
import { useQuery } from "../shared/use-query.ts";
import type { Viewer } from "./viewer.ts";

/** The days from which the present rate is computed: a week, so that weekends count. */
const RATE_DAYS = 7;

type SpendingProps = { readonly viewer: Viewer; readonly availableMicros: bigint; readonly version: unknown };

/** What is spent today and this month, and how long the balance lasts. */
export function Spending({ viewer, availableMicros, version }: SpendingProps) {
  const { data, problem } = useQuery((signal) => spendingOf(viewer, signal), [viewer.id, version]);
  const rate = data && data.week / BigInt(RATE_DAYS);
  const money = (micros: bigint | undefined) =>
    problem ? "–" : micros === undefined ? undefined : <Money micros={micros} />;
  return (
    <>
      <Stat label="Spent today" value={money(data?.today)} />
      <Stat label="Spent this month" value={money(data?.month)} />
      <Stat
        label="At this rate empty in"
        value={problem ? "–" : rate === undefined ? undefined : durationText(availableMicros, rate)}
        note={rate !== undefined && rate > 0n && `${moneyText(rate)} a day in the last ${RATE_DAYS} days`}
      />
    </>
  );
}

/** The viewer's days and month. */
async function spendingOf({ usageService }: Viewer, signal: AbortSignal) {
  const now = new Date();
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate());
  const month = new Date(now.getFullYear(), now.getMonth(), 1);
  const [week = today] = lastDays(RATE_DAYS, now);
  const from = timestampFromDate(week < month ? week : month);
  const { rows } = await usageService.getUsage(
    { from, groupBy: ["day"], tz: ZONE, pageSize: 100 },
    { signal },
  );
  const since = (start: Date) =>
    rows.reduce((sum, row) => (isFrom(row.start, start) ? sum + row.costMicros : sum), 0n);
  return { today: since(today), month: since(month), week: since(week) };
}

function isFrom(at: Timestamp | undefined, start: Date): boolean {
  return at !== undefined && timestampDate(at) >= start;
}

function durationText(availableMicros: bigint, ratePerDay: bigint): string {
  if (availableMicros <= 0n) return "Empty";
  if (ratePerDay <= 0n) return "–";
  const hours = (availableMicros * 24n) / ratePerDay;
  if (hours < 48n) return `${hours} hours`;
  const days = hours / 24n;
  return days > 730n ? "Over 2 years" : `${days} days`;
}
