import { useMemo } from "preact/hooks";
import { type Group, groupsOf, loadUsage, type Measure, mergeUsage, type Split, type UsageSource } from "./usage.ts";
import { periodsOf, type Range } from "./usage-range.tsx";
import { useQuery } from "./use-query.ts";

export const RANGES = [
  { value: "7", text: "7 days" },
  { value: "30", text: "30 days" },
  { value: "90", text: "90 days" },
] as const;

export const SPLITS = {
  model: { value: "model", text: "By model" },
  key: { value: "key", text: "By key" },
  account: { value: "account", text: "By account" },
  user: { value: "user", text: "By end user" },
} as const;

/** What the usage is divided by, in a sentence. */
export const NOUNS: Readonly<Record<Split, string>> = {
  model: "model",
  key: "key",
  account: "account",
  user: "end user",
};

export const MEASURES = [
  { value: "cost", text: "Cost" },
  { value: "requests", text: "Requests" },
  { value: "tokens", text: "Tokens" },
] as const;

/** The choices of the viewer, which are in the URL. */
export type UsageView = {
  readonly range: (typeof RANGES)[number]["value"];
  readonly split: Split;
  readonly measure: Measure;
};

/** The first of the splits is shown unless the URL names another one. */
export function usageViewOf(params: URLSearchParams, splits: readonly [Split, ...Split[]]): UsageView {
  const choice = <Value extends string>(name: string, values: readonly Value[], normal: Value) =>
    values.find((value) => value === params.get(name)) ?? normal;
  return {
    range: choice(
      "range",
      RANGES.map(({ value }) => value),
      "30",
    ),
    split: choice("split", splits, splits[0]),
    measure: choice(
      "measure",
      MEASURES.map(({ value }) => value),
      "cost",
    ),
  };
}

/** The models and keys whose usage is shown; none stand for all. */
export type UsageFilter = Readonly<Record<"model" | "key", readonly string[]>>;

const ALL: UsageFilter = { model: [], key: [] };

/** Loads the usage of a range. `id` identifies the source. */
export function useUsage(
  source: UsageSource,
  { split, measure }: Pick<UsageView, "split" | "measure">,
  id: string,
  range: Range,
  filter = ALL,
) {
  const query = useQuery(
    async (signal) => {
      const periods = periodsOf(range);
      const others = (["model", "key"] as const).filter((one) => one !== split && filter[one].length > 0);
      const [known, loaded] = await Promise.all([
        source.namesOf?.(split),
        loadUsage(source, [split, ...others], periods, signal),
      ]);
      const isShown = (ids: readonly string[], one: string) => ids.length === 0 || ids.includes(one);
      const rows =
        loaded && mergeUsage(loaded.filter(({ model, keyId }) => isShown(filter.model, model) && isShown(filter.key, keyId)));
      const names = new Map(known);
      for (const { id, name } of rows ?? []) if (name !== "") names.set(id, name);
      return { rows, names, periods, split };
    },
    [split, range.from, range.to, JSON.stringify(filter), id],
  );
  const groups: readonly Group[] = useMemo(() => groupsOf(query.data?.rows ?? [], measure), [query.data, measure]);
  return { ...query, groups };
}

export type LoadedUsage = ReturnType<typeof useUsage>;
