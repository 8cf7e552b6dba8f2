import { type Timestamp, timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { UsageRow } from "../../gen/vx/v1/usage_pb.js";
import { MAX_SERIES, type Series } from "./bar-chart.tsx";
import { ZONE } from "./time.tsx";
import type { Periods } from "./usage-range.tsx";

/** The usage of a day or an hour has a row for each of these. */
export type Split = "model" | "key" | "account" | "user";

/** Where usage comes from. */
export type UsageSource = {
  readonly list: (
    request: {
      readonly from: Timestamp;
      readonly to?: Timestamp;
      readonly groupBy: string[];
      readonly tz: string;
      readonly pageSize: number;
      readonly pageToken: string;
    },
    options: { readonly signal: AbortSignal },
  ) => Promise<{
    readonly rows: readonly ListedUsage[];
    readonly nextPageToken: string;
  }>;
  /** The names of models, keys or accounts, if the list does not have them. */
  readonly namesOf?: (split: Split) => Promise<ReadonlyMap<string, string>>;
};

/** Texts are empty if the usage is not divided by them, or if they are unknown. */
type ListedUsage = {
  readonly usage: UsageRow;
  readonly accountId: string;
  readonly accountName: string;
  readonly keyName: string;
};

/** The usage of a day or an hour by one model, key, account or end user. */
export type SplitUsage = Omit<UsageRow, "$typeName"> & {
  /** The id of the model, key, account or end user. */
  readonly id: string;
  /** Empty if it is not known. */
  readonly name: string;
};

export type Measure = "cost" | "requests" | "tokens";

/** The usage of one model, key, account or end user in the whole range. */
export type Group = Sums & Pick<SplitUsage, "id">;

type Sums = Pick<UsageRow, "requests" | "inputTokens" | "outputTokens" | "costMicros">;

const PAGE_SIZE = 1_000;
/** More rows than a chart can show, such as those of a thousand keys. */
const MAX_PAGES = 20;

export const VALUES: Readonly<Record<Measure, (sums: Sums) => bigint>> = {
  cost: ({ costMicros }) => costMicros,
  requests: ({ requests }) => requests,
  tokens: ({ inputTokens, outputTokens }) => inputTokens + outputTokens,
};

/**
 * The usage of each period, or of all together without a unit, by groups, the first of which identifies a row; undefined if it is too
 * much to show.
 */
export async function loadUsage(
  { list }: UsageSource,
  splits: readonly [Split, ...Split[]],
  { unit, starts, end }: Omit<Periods, "unit"> & { readonly unit?: Periods["unit"] | undefined },
  signal: AbortSignal,
): Promise<readonly SplitUsage[] | undefined> {
  const [split] = splits;
  const request = {
    from: timestampFromDate(starts[0] ?? end),
    to: timestampFromDate(end),
    groupBy: [...(unit ? [unit] : []), ...splits],
    tz: ZONE,
    pageSize: PAGE_SIZE,
  };
  const rows: SplitUsage[] = [];
  let pageToken = "";
  for (let page = 0; page < MAX_PAGES; page++) {
    const response = await list({ ...request, pageToken }, { signal });
    rows.push(...response.rows.map((row) => ({ ...row.usage, ...identityOf(row, split) })));
    pageToken = response.nextPageToken;
    if (pageToken === "") return rows;
  }
  return undefined;
}

/** Adds up rows that are divided further than by their ids. */
export function mergeUsage(rows: readonly SplitUsage[]): SplitUsage[] {
  const merged = new Map<string, SplitUsage>();
  for (const row of rows) {
    const place = `${row.start?.seconds} ${row.id}`;
    const before = merged.get(place);
    const sum = (name: "requests" | "inputTokens" | "cachedInputTokens" | "outputTokens" | "reasoningTokens" | "costMicros") =>
      row[name] + (before?.[name] ?? 0n);
    merged.set(place, {
      ...row,
      requests: sum("requests"),
      inputTokens: sum("inputTokens"),
      cachedInputTokens: sum("cachedInputTokens"),
      outputTokens: sum("outputTokens"),
      reasoningTokens: sum("reasoningTokens"),
      costMicros: sum("costMicros"),
    });
  }
  return [...merged.values()];
}

/** The sums of each group, the highest first. */
export function groupsOf(rows: readonly Group[], measure: Measure): Group[] {
  const sums = new Map<string, Group>();
  for (const row of rows) {
    const { id } = row;
    const sum = sums.get(id);
    sums.set(id, {
      id,
      requests: row.requests + (sum?.requests ?? 0n),
      inputTokens: row.inputTokens + (sum?.inputTokens ?? 0n),
      outputTokens: row.outputTokens + (sum?.outputTokens ?? 0n),
      costMicros: row.costMicros + (sum?.costMicros ?? 0n),
    });
  }
  const measured = VALUES[measure];
  return [...sums.values()].sort((one, other) => Number(measured(other) - measured(one)));
}

/** What a group counts in a period. */
export type PeriodCount = { readonly id: string; readonly start?: Timestamp | undefined };

/** A series for each of the highest groups, and one for all others together. */
export function seriesOf<Row extends PeriodCount>(
  rows: readonly Row[],
  groups: readonly Pick<Group, "id">[],
  options: {
    readonly starts: readonly Date[];
    readonly measureOf: (row: Row) => bigint;
    readonly nameOf: (id: string) => string;
  },
): Series[] {
  const { starts, measureOf, nameOf } = options;
  const shown = groups.length > MAX_SERIES ? groups.slice(0, MAX_SERIES - 1) : groups;
  const places = new Map(shown.map(({ id }, place) => [id, place]));
  const names = shown.map(({ id }) => nameOf(id));
  if (shown.length < groups.length) names.push(`${groups.length - shown.length} others`);
  const values = names.map(() => starts.map(() => 0n));
  for (const row of rows) {
    const at = row.start && timestampDate(row.start);
    const index = at ? starts.findLastIndex((start) => start <= at) : -1;
    const series = values[places.get(row.id) ?? shown.length];
    if (index === -1 || series === undefined) continue;
    series[index] = (series[index] ?? 0n) + measureOf(row);
  }
  return names.map((name, place) => ({ name, values: values[place] ?? [] }));
}

function identityOf({ usage, accountId, accountName, keyName }: ListedUsage, split: Split) {
  if (split === "model") return { id: usage.model, name: "" };
  if (split === "user") return { id: usage.user, name: usage.user === "" ? "No end user" : "" };
  return split === "key" ? { id: usage.keyId, name: keyName } : { id: accountId, name: accountName };
}
