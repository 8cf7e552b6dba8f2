import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { UsageRow } from "../../gen/vx/v1/usage_pb.js";
import { MAX_SERIES, type Series } from "../shared/bar-chart.tsx";
import { ZONE } from "../shared/time.tsx";
import type { Viewer } from "./viewer.ts";

export type Split = "model" | "key";

export type Measure = "cost" | "requests" | "tokens";

/** What was used with one model, or with one key. */
export type Group = Sums & {
  /** The id of the model or of the key. */
  readonly id: string;
};

type Sums = Pick<UsageRow, "requests" | "inputTokens" | "outputTokens" | "costMicros">;

const PAGE_SIZE = 1_000;
/** More rows than a chart can show, such as those of a thousand keys. */
const MAX_PAGES = 20;

const MEASURES: Readonly<Record<Measure, (sums: Sums) => bigint>> = {
  cost: ({ costMicros }) => costMicros,
  requests: ({ requests }) => requests,
  tokens: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
};

/** The last days in the zone of the viewer, today included, by their starts. */
export function lastDays(count: number, now: Date): Date[] {
  const [year, month, day] = [now.getFullYear(), now.getMonth(), now.getDate()];
  return Array.from({ length: count }, (_, index) => new Date(year, month, day - count + 1 + index));
}

/** The usage since the day, by day and group; undefined if it is too much to show. */
export async function loadUsage(
  { usageService }: Viewer,
  split: Split,
  from: Date,
  signal: AbortSignal,
): Promise<readonly UsageRow[] | undefined> {
  const rows: UsageRow[] = [];
  let pageToken = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const response = await usageService.getUsage(
      {
        from: timestampFromDate(from),
        groupBy: ["day", split],
        tz: ZONE,
        pageSize: PAGE_SIZE,
        pageToken,
      },
      { signal },
    );
    rows.push(...response.rows);
    pageToken = response.nextPageToken;
    if (pageToken === "") return rows;
  }
  return undefined;
}

/** The sums of each model or key, the highest first. */
export function groupsOf(rows: readonly UsageRow[], split: Split, measure: Measure): Group[] {
  const sums = new Map<string, Group>();
  for (const row of rows) {
    const id = idOf(row, split);
    const sum = sums.get(id);
    sums.set(id, {
      id,
      requests: row.requests + (sum?.requests ?? 0n),
      inputTokens: row.inputTokens + (sum?.inputTokens ?? 0n),
      outputTokens: row.outputTokens + (sum?.outputTokens ?? 0n),
      costMicros: row.costMicros + (sum?.costMicros ?? 0n),
    });
  }
  const measured = MEASURES[measure];
  return [...sums.values()].sort((one, other) => (measured(one) < measured(other) ? 1 : -1));
}

/** A series for each of the highest groups, and one for all others together. */
export function seriesOf(
  rows: readonly UsageRow[],
  groups: readonly Group[],
  options: {
    readonly days: readonly Date[];
    readonly split: Split;
    readonly measure: Measure;
    readonly nameOf: (id: string) => string;
  },
): Series[] {
  const { days, split, measure, nameOf } = options;
  const indexes = new Map(days.map((day, index) => [day.toDateString(), index]));
  const shown = groups.length > MAX_SERIES ? groups.slice(0, MAX_SERIES - 1) : groups;
  const places = new Map(shown.map(({ id }, place) => [id, place]));
  const names = shown.map(({ id }) => nameOf(id));
  if (shown.length < groups.length) names.push(`${groups.length - shown.length} others`);
  const values = names.map(() => days.map(() => 0n));
  for (const row of rows) {
    const index = row.start && indexes.get(timestampDate(row.start).toDateString());
    const series = values[places.get(idOf(row, split)) ?? shown.length];
    if (index === undefined || series === undefined) continue;
    series[index] = (series[index] ?? 0n) + MEASURES[measure](row);
  }
  return names.map((name, place) => ({ name, values: values[place] ?? [] }));
}

function idOf(row: UsageRow, split: Split): string {
  return split === "model" ? row.model : row.keyId;
}
