import { Money, moneyText } from "../shared/money.tsx";
import { RATE_DAYS, spentOf } from "../shared/spent.ts";
import { Stat } from "../shared/stat.tsx";
import { useQuery } from "../shared/use-query.ts";
import { usageOf, type Viewer } from "./viewer.ts";

type SpendingProps = { readonly viewer: Viewer; readonly availableMicros: bigint; readonly version: unknown };

/** What is spent today and this month, and how long the balance lasts. */
export function Spending({ viewer, availableMicros, version }: SpendingProps) {
  const { data, problem } = useQuery((signal) => spentOf(usageOf(viewer), signal), [viewer.id, version]);
  const rate = data && data.week / BigInt(RATE_DAYS);
  const money = (micros: bigint | undefined) => (problem ? "–" : micros === undefined ? undefined : <Money micros={micros} />);
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

function durationText(availableMicros: bigint, ratePerDay: bigint): string {
  if (availableMicros <= 0n) return "Empty";
  if (ratePerDay <= 0n) return "–";
  const hours = (availableMicros * 24n) / ratePerDay;
  if (hours < 48n) return `${hours} hours`;
  const days = hours / 24n;
  return days > 730n ? "Over 2 years" : `${days} days`;
}
