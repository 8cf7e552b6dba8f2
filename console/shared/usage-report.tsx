import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Button } from "./button.tsx";
import { Stats } from "./stat.tsx";
import { isoDay, isoMinute, ZoneNote } from "./time.tsx";
import { loadUsage, type Split, type UsageSource } from "./usage.ts";
import { UsageCard, UsageStats } from "./usage-card.tsx";
import { NORMAL_DAYS, periodsOf, type Range, RangeFields, rangeOf } from "./usage-range.tsx";
import { UsageSums } from "./usage-sums.tsx";
import { type UsageFilter, usageViewOf, useUsage } from "./usage-view.ts";
import { useQuery } from "./use-query.ts";
import { changeParams } from "./use-route.ts";

type UsageReportProps = {
  readonly source: UsageSource;
  /** Identifies the source. */
  readonly id: string;
  readonly splits: readonly [Split, ...Split[]];
  /** The section of the URL that shows the report, and what the URL selects in it. */
  readonly section: string;
  readonly params: URLSearchParams;
  /** What the cost is called. */
  readonly costName: string;
  /** The addresses of what the usage is divided by, if it has pages. */
  readonly hrefs?: Partial<Record<Split, (id: string) => string>>;
  /** Another filter, before the others. */
  readonly first?: ComponentChildren;
  /** More about the range. */
  readonly children?: ComponentChildren;
};

const MENUS = [
  ["model", "models", "Models"],
  ["key", "keys", "Keys"],
] as const;

/** The usage of days that the viewer chooses, of some models and keys or of all. */
export function UsageReport(props: UsageReportProps) {
  const { source, id, splits, section, params, costName, hrefs, first, children } = props;
  const view = usageViewOf(params, splits);
  const range = rangeOf(params);
  const filter: UsageFilter = { model: listOf(params, "models"), key: listOf(params, "keys") };
  const usage = useUsage(source, view, id, range, filter);
  const { data } = usage;
  const show = (part: Readonly<Record<string, string>>) => changeParams(section, part);
  const startText = data?.periods.unit === "hour" ? isoMinute : isoDay;
  const isDivided = data !== undefined && data.periods.starts.length > 1;
  return (
    <>
      <fieldset class="filters">
        <legend class="hidden">Filters</legend>
        {first}
        <RangeFields section={section} range={range} />
      </fieldset>
      <div class="page-actions">
        {MENUS.map(([split, name, label]) => (
          <ChoiceMenu
            key={name}
            label={label}
            load={(signal) => loadOptions(source, split, range, signal)}
            inputs={[id, range.from, range.to]}
            selected={filter[split]}
            onChange={(ids) => show({ [name]: ids.join(",") })}
          />
        ))}
        <Button onClick={usage.reload} disabled={usage.isLoading}>
          Refresh
        </Button>
      </div>
      <Stats>
        <UsageStats usage={usage} costName={costName} />
      </Stats>
      <UsageCard
        usage={usage}
        view={view}
        splits={splits}
        onChange={show}
        emptyTitle="No usage in this range"
        empty={<p>Charged calls appear here at once.</p>}
        onSelect={isDivided ? (start) => show({ from: startText(start), to: isoDay(start) }) : undefined}
      >
        <div class="usage-header">
          <p class="muted small">{isDivided && `Choose a bar to see its ${data.periods.unit}.`}</p>
          {range.from === range.to && <Button onClick={() => show({ from: "", to: "" })}>Back to {NORMAL_DAYS} days</Button>}
          {range.from > range.to && <Button onClick={() => show({ from: range.to })}>Back to the day</Button>}
        </div>
      </UsageCard>
      {!usage.problem && data?.rows && usage.groups.length > 0 && (
        <UsageSums {...data} rows={data.rows} groups={usage.groups} hrefOf={hrefs?.[data.split]} />
      )}
      {children}
      <ZoneNote />
    </>
  );
}

type Option = readonly [id: string, name: string];

/** What has usage in the range; undefined if it is too much to show. */
async function loadOptions(source: UsageSource, split: Split, range: Range, signal: AbortSignal): Promise<Option[] | undefined> {
  const [names, rows] = await Promise.all([
    source.namesOf?.(split),
    loadUsage(source, [split], { ...periodsOf(range), unit: undefined }, signal),
  ]);
  return rows?.map(({ id, name }) => [id, names?.get(id) ?? (name || id)]);
}

type ChoiceMenuProps = {
  readonly label: string;
  /** Loads the options when the menu is opened. */
  readonly load: (signal: AbortSignal) => Promise<Option[] | undefined>;
  /** What the options depend on. */
  readonly inputs: readonly unknown[];
  readonly selected: readonly string[];
  readonly onChange: (ids: readonly string[]) => void;
};

/** Any number of values; none stands for all. */
function ChoiceMenu({ label, load, inputs, selected, onChange }: ChoiceMenuProps) {
  const [isOpen, setOpen] = useState(false);
  const { data, problem } = useQuery(
    async (signal) => (isOpen ? { options: await load(signal) } : undefined),
    [isOpen, ...inputs],
  );
  const options = data?.options ?? [];
  const none = data?.options ? "None in this range" : "Too many to show";
  const shown = [...options, ...selected.filter((id) => !options.some(([one]) => one === id)).map((id) => [id, id] as const)];
  return (
    <details class="choice-menu" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="button button-plain">
        {label}: {selected.length === 0 ? "all" : selected.length}
      </summary>
      <fieldset class="choice-list">
        <legend class="hidden">{label}</legend>
        {shown.length === 0 && <p class="muted small">{problem?.title ?? (data ? none : "Loading …")}</p>}
        {shown.map(([id, name]) => (
          <label key={id} class="choice">
            <input
              type="checkbox"
              checked={selected.includes(id)}
              onChange={(event) =>
                onChange(event.currentTarget.checked ? [...selected, id] : selected.filter((one) => one !== id))
              }
            />
            <span class="wrap">{name}</span>
          </label>
        ))}
      </fieldset>
    </details>
  );
}

function listOf(params: URLSearchParams, name: string): string[] {
  return (params.get(name) ?? "").split(",").filter((id) => id !== "");
}
