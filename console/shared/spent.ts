import { type Timestamp, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ZONE } from "./time.tsx";
import type { UsageSource } from "./usage.ts";

/** The days from which the present rate is computed: a week, so that weekends count. */
export const RATE_DAYS = 7;

/** What an account spent in the viewer's day and month, and in the last days. */
export async function spentOf({ list }: UsageSource, signal: AbortSignal) {
  const now = new Date();
  const today = new Date(now.getFullYear(), now.getMonth(), now.getDate());
  const month = new Date(now.getFullYear(), now.getMonth(), 1);
  const week = new Date(now.getFullYear(), now.getMonth(), now.getDate() - RATE_DAYS + 1);
  const from = timestampFromDate(week < month ? week : month);
  const request = { from, groupBy: ["day"], tz: ZONE, pageSize: 100, pageToken: "" };
  const { rows } = await list(request, { signal });
  const since = (start: Date) => rows.reduce((sum, { usage }) => (isFrom(usage.start, start) ? sum + usage.costMicros : sum), 0n);
  return { today: since(today), month: since(month), week: since(week) };
}

function isFrom(at: Timestamp | undefined, start: Date): boolean {
  return at !== undefined && timestampDate(at) >= start;
}
