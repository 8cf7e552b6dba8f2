import { useMemo } from "preact/hooks";
import { Button } from "../shared/button.tsx";
import { startOfDay } from "../shared/days.ts";
import { Field } from "../shared/field.tsx";
import { DayFilters } from "../shared/filter-fields.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { Segmented } from "../shared/segmented.tsx";
import { Stat, Stats } from "../shared/stat.tsx";
import { EmptyState, ErrorState, Skeleton } from "../shared/states.tsx";
import { isoDay, ZoneNote } from "../shared/time.tsx";
import { groupsOf, lastDays, loadUsage, mergeUsage, type SplitUsage } from "../shared/usage.ts";
import { UsageChart } from "../shared/usage-chart.tsx";
import { UsageSums } from "../shared/usage-sums.tsx";
import { MEASURES, SPLITS, usageViewOf } from "../shared/usage-view.ts";
import { useQuery } from "../shared/use-query.ts";
import { changeParams } from "../shared/use-route.ts";
import { usageOf, type Viewer } from "./viewer.ts";

const MONTHS = 12;
/** A chart of more days has bars that are too narrow to be told apart. */
const MAX_DAYS = 366;
const NORMAL_DAYS = 30;

type UsageSectionProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

type Range = { readonly from: string; readonly to: string };

/** The usage of days that the viewer chooses, of some models and keys or of all. */
export function UsageSection({ viewer, params }: UsageSectionProps) {
  const view = usageViewOf(params, ["model", "key"]);
  const range = rangeOf(params);
  const models = listOf(params, "models");
  const keys = listOf(params, "keys");
  const show = (part: Readonly<Record<string, string>>) => changeParams("usage", part);
  const query = useQuery(
    async (signal) => {
      const days = daysOf(range);
      const end = startOfDay(range.to, 1);
      const [names, rows] = await Promise.all([
        viewer.keyNames(),
        loadUsage(
          usageOf(viewer),
          ["model", "key"],
          { from: days[0] ?? new Date(), ...(end && { to: end }) },
          signal,
        ),
      ]);
      return { days, names, rows };
    },
    [viewer.id, range.from, range.to],
  );
  const { data, problem, reload } = query;
  const split = view.split === "key" ? "key" : "model";
  const all = data?.rows ?? [];
  const filtered = useMemo(() => {
    const chosen = all.filter(
      ({ model, keyId }) =>
        (models.length === 0 || models.includes(model)) && (keys.length === 0 || keys.includes(keyId)),
    );
    return mergeUsage(chosen, split);
  }, [data, models.join(), keys.join(), split]);
  const groups = useMemo(() => groupsOf(filtered, view.measure), [filtered, view.measure]);
  return (
    <>
      <PageHeader title="Usage">
        <Button onClick={reload} disabled={query.isLoading}>
          Refresh
        </Button>
      </PageHeader>
      <fieldset class="filters">
        <legend class="hidden">Filters</legend>
        <MonthField range={range} onChange={show} />
        <DayFilters section="usage" from={range.from} to={range.to} />
      </fieldset>
      <div class="page-actions">
        <ChoiceMenu
          label="Models"
          options={idsOf(all, "model").map((id) => [id, id])}
          selected={models}
          onChange={(ids) => show({ models: ids.join(",") })}
        />
        <ChoiceMenu
          label="Keys"
          options={idsOf(all, "keyId").map((id) => [id, data?.names.get(id) ?? id])}
          selected={keys}
          onChange={(ids) => show({ keys: ids.join(",") })}
        />
        <Segmented
          label="Measure"
          options={MEASURES}
          value={view.measure}
          onChange={(measure) => show({ measure })}
        />
        <Segmented
          label="Split"
          options={[SPLITS.model, SPLITS.key]}
          value={split}
          onChange={(one) => show({ split: one })}
        />
      </div>
      {problem && <ErrorState problem={problem} onRetry={reload} />}
      {data === undefined && !problem && <Skeleton width="100%" height="20rem" />}
      {data && data.rows === undefined && (
        <EmptyState title="Too much to show">
          <p>Select fewer days, or read the usage with the API.</p>
        </EmptyState>
      )}
      {data?.rows && (
        <>
          <Sums rows={filtered} />
          {filtered.length === 0 ? (
            <div class="panel">
              <EmptyState title="No usage in these days">
                <p>Charged calls appear here at once.</p>
              </EmptyState>
            </div>
          ) : (
            <>
              <section class="card usage" aria-labelledby="usage" aria-busy={query.isLoading}>
                <div class="usage-header">
                  <h2 id="usage">Usage by day</h2>
                  {range.from === range.to ? (
                    <Button onClick={() => history.back()}>Back to all days</Button>
                  ) : (
                    <p class="muted small">Choose a bar to see its day.</p>
                  )}
                </div>
                <UsageChart
                  rows={filtered}
                  groups={groups}
                  days={data.days}
                  split={split}
                  measure={view.measure}
                  names={data.names}
                  onSelect={
                    data.days.length > 1 ? (day) => show({ from: isoDay(day), to: isoDay(day) }) : undefined
                  }
                />
              </section>
              <UsageSums rows={filtered} groups={groups} split={split} names={data.names} />
            </>
          )}
        </>
      )}
      <ZoneNote />
    </>
  );
}

function Sums({ rows }: { readonly rows: readonly SplitUsage[] }) {
  const sum = (value: (row: SplitUsage) => bigint) => rows.reduce((total, row) => total + value(row), 0n);
  return (
    <Stats>
      <Stat label="Cost" value={<Money micros={sum((row) => row.costMicros)} />} />
      <Stat label="Requests" value={numberText(sum((row) => row.requests))} />
      <Stat
        label="Input tokens"
        value={numberText(sum((row) => row.inputTokens))}
        note={`${numberText(sum((row) => row.cachedInputTokens))} from the cache`}
      />
      <Stat
        label="Output tokens"
        value={numberText(sum((row) => row.outputTokens))}
        note={`${numberText(sum((row) => row.reasoningTokens))} for reasoning`}
      />
    </Stats>
  );
}

type MonthFieldProps = { readonly range: Range; readonly onChange: (range: Range) => void };

/** Selects the days of a month. */
function MonthField({ range, onChange }: MonthFieldProps) {
  const now = new Date();
  const months = Array.from({ length: MONTHS }, (_, back) => {
    const first = new Date(now.getFullYear(), now.getMonth() - back, 1);
    const last = new Date(now.getFullYear(), now.getMonth() - back + 1, 0);
    const from = isoDay(first);
    return { from, to: isoDay(last < now ? last : now), name: from.slice(0, 7) };
  });
  const shown = months.find(({ from, to }) => from === range.from && to === range.to);
  return (
    <Field label="Month">
      {(control) => (
        <select
          {...control}
          value={shown?.name ?? ""}
          onChange={(event) => {
            const { name, ...days } = months.find(({ name }) => name === event.currentTarget.value) ?? {
              name: "",
              from: "",
              to: "",
            };
            onChange(days);
          }}
        >
          <option value="">Other days</option>
          {months.map(({ name }) => (
            <option key={name} value={name}>
              {name}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

type ChoiceMenuProps = {
  readonly label: string;
  readonly options: readonly (readonly [id: string, name: string])[];
  readonly selected: readonly string[];
  readonly onChange: (ids: readonly string[]) => void;
};

/** Any number of values; none stands for all. */
function ChoiceMenu({ label, options, selected, onChange }: ChoiceMenuProps) {
  const shown = [
    ...options,
    ...selected.filter((id) => !options.some(([one]) => one === id)).map((id) => [id, id] as const),
  ];
  return (
    <details class="choice-menu">
      <summary class="button button-plain">
        {label}: {selected.length === 0 ? "all" : selected.length}
      </summary>
      <fieldset class="choice-list">
        <legend class="hidden">{label}</legend>
        {shown.length === 0 && <p class="muted small">None in these days</p>}
        {shown.map(([id, name]) => (
          <label key={id} class="choice">
            <input
              type="checkbox"
              checked={selected.includes(id)}
              onChange={(event) =>
                onChange(
                  event.currentTarget.checked ? [...selected, id] : selected.filter((one) => one !== id),
                )
              }
            />
            <span class="wrap">{name}</span>
          </label>
        ))}
      </fieldset>
    </details>
  );
}

function idsOf(rows: readonly SplitUsage[], field: "model" | "keyId"): string[] {
  return [...new Set(rows.map((row) => row[field]))].sort();
}

function listOf(params: URLSearchParams, name: string): string[] {
  return (params.get(name) ?? "").split(",").filter((id) => id !== "");
}

/** Days that the address does not name, or names wrongly, are those of the last month. */
function rangeOf(params: URLSearchParams): Range {
  const now = new Date();
  const given = params.get("to") ?? "";
  const to = startOfDay(given, 0) ? given : isoDay(now);
  const end = startOfDay(to, 0) ?? now;
  const from = params.get("from") ?? "";
  const start = startOfDay(from, 0);
  const isValid =
    start !== undefined && start <= end && end.getTime() - start.getTime() < MAX_DAYS * 86_400_000;
  return { to, from: isValid ? from : isoDay(lastDays(NORMAL_DAYS, end)[0] ?? end) };
}

function daysOf({ from, to }: Range): Date[] {
  const days: Date[] = [];
  const end = startOfDay(to, 0) ?? new Date();
  for (
    let day = startOfDay(from, 0) ?? end;
    day <= end;
    day = startOfDay(isoDay(day), 1) ?? new Date(end.getTime() + 1)
  ) {
    days.push(day);
  }
  return days;
}
