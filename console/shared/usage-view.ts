import { useMemo } from "preact/hooks";
import {
  type Group,
  groupsOf,
  lastDays,
  loadUsage,
  type Measure,
  type Split,
  type UsageSource,
} from "./usage.ts";
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
} as const;

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

/** Loads the usage of a view. `id` identifies the source. */
export function useUsage(source: UsageSource, view: UsageView, id: string) {
  const query = useQuery(
    async (signal) => {
      const { range, split } = view;
      const days = lastDays(Number(range), new Date());
      const [first = new Date()] = days;
      const [known, rows] = await Promise.all([
        source.namesOf?.(split),
        loadUsage(source, [split], { from: first }, signal),
      ]);
      const names = new Map(known);
      for (const { id, name } of rows ?? []) if (name !== "") names.set(id, name);
      return { rows, names, days, split };
    },
    [view.split, view.range, id],
  );
  const groups: readonly Group[] = useMemo(
    () => groupsOf(query.data?.rows ?? [], view.measure),
    [query.data, view.measure],
  );
  return { ...query, groups };
}

export type LoadedUsage = ReturnType<typeof useUsage>;
