import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { FunctionCaller } from "../database/driver/cells.ts";
import { DomainError } from "../domain/errors.ts";
import {
  monthStart,
  type Period,
  periodStarts,
  QUARTER_MS,
  type Quarter,
  type QuarterRange,
  type TimeZone,
  timeZoneOf,
} from "../domain/periods.ts";
import { dateOf } from "../rules/request-values.ts";
import { currentQuarter, type Grouping, type UsageQuery } from "./sums.ts";

/** A statement gets the start of each. */
const MAX_PERIODS = 3_000;

const PERIODS: readonly string[] = ["hour", "day", "month"] satisfies Period[];

type UsageFields = {
  readonly from?: Timestamp | undefined;
  readonly to?: Timestamp | undefined;
  readonly groupBy: readonly string[];
  readonly tz: string;
};

/** Reads the common fields of requests for usage. `names` are the ids that rows can be grouped by. */
export async function usageQueryOf(
  cell: FunctionCaller,
  request: UsageFields,
  names: readonly (keyof Grouping)[],
): Promise<UsageQuery> {
  const zone = timeZoneOf(request.tz === "" ? "UTC" : request.tz);
  const { period, by } = groupingOf(request.groupBy, names);
  const { from, to } = await rangeOf(cell, request, zone);
  const starts = period && from < to ? await periodStarts(zone, period, { from, to }, MAX_PERIODS) : [from];
  if (!starts) {
    throw DomainError.ofField("from", `the range can have at most ${MAX_PERIODS} periods; this has more ${period}s`);
  }
  return { starts, end: to, by };
}

function groupingOf(values: readonly string[], names: readonly (keyof Grouping)[]) {
  const parts = values.length === 0 ? ["day"] : values.flatMap((value) => value.split(","));
  const by = { account: false, key: false, model: false, user: false, upstream: false };
  let period: Period | undefined;
  for (const part of parts) {
    const name = names.find((known) => known === part);
    if (name) by[name] = true;
    else if (!PERIODS.includes(part)) {
      throw DomainError.ofField("group_by", `must consist of ${[...PERIODS, ...names].join(", ")}`);
    } else if (period !== undefined && period !== part) {
      throw DomainError.ofField("group_by", `can have one period, not both ${period} and ${part}`);
    } else period = part as Period;
  }
  return { period, by };
}

/** The fields that a page token is valid for. A range without an end has none here: the current time changes. */
export function usageFiltersOf({ from, to, groupBy, tz }: UsageFields, accountId: string) {
  return [accountId, textOf(from), textOf(to), groupBy.flatMap((value) => value.split(",")), tz];
}

function textOf(time: Timestamp | undefined): string {
  return time === undefined ? "" : String(time.seconds);
}

export async function usageRangeOf(cell: FunctionCaller, request: Pick<UsageFields, "from" | "to">): Promise<QuarterRange> {
  return await rangeOf(cell, request, timeZoneOf("UTC"));
}

async function rangeOf(cell: FunctionCaller, request: Pick<UsageFields, "from" | "to">, zone: TimeZone): Promise<QuarterRange> {
  const [first, end] = [quarterAt("from", request.from), quarterAt("to", request.to)];
  const isComplete = first !== undefined && end !== undefined;
  const now = isComplete ? 0 : await currentQuarter(cell);
  const from = first ?? (await monthStart(zone, now));
  const to = end ?? Math.max(now + 1, from);
  if (from > to) throw DomainError.ofField("from", 'must not be after "to"');
  return { from, to };
}

/** Before this year, some time zones differed from UTC by odd minutes. */
const FIRST_YEAR = 2000;

function quarterAt(field: string, timestamp: Timestamp | undefined): Quarter | undefined {
  const date = dateOf(field, timestamp);
  if (date === undefined) return undefined;
  if (date.getUTCFullYear() < FIRST_YEAR) throw DomainError.ofField(field, `must not be before ${FIRST_YEAR}`);
  const isWhole = date.getTime() % QUARTER_MS === 0 && timestamp?.nanos === 0;
  if (!isWhole) throw DomainError.ofField(field, "must be on a quarter of an hour, such as 2030-01-31T13:45:00Z");
  return date.getTime() / QUARTER_MS;
}
