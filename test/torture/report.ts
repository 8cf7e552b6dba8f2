import type { Exactness } from "./checker/admissions.ts";
import type { LostCommits } from "./checker/lost-commits.ts";
import type { Races } from "./checker/races.ts";
import type { Revocations } from "./checker/revocations.ts";
import { METRICS } from "./limits.ts";

export type TableRow = {
  readonly fault: string;
  readonly calls: number;
  readonly dropped: number;
  readonly late: number;
  readonly ok: number;
  readonly refused: number;
  readonly failed: number;
  /** Calls without a connection, which certainly had no effect. */
  readonly unreached: number;
  readonly unknown: number;
  readonly left: number;
  readonly violations: number;
  readonly rows: number;
  readonly executions: number;
  readonly recoveryMs: number;
  /** The longest time between two successful generations of a server. */
  readonly outageMs: number;
  readonly lost: LostCommits;
  /** How long the holds of killed servers remained, and how many there were. */
  readonly givenBackMs: number | undefined;
  readonly orphans: number;
  readonly afterRevoke: Revocations;
  readonly exactness: Exactness;
  readonly races: Races;
  readonly limited: ReadonlyMap<string, number>;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly moneyChecks: number;
  readonly rowChecks: number;
};

/** Merges rounds of the same fault into one line: sums of counts, maximums of times. */
export function printTable(rows: readonly TableRow[]): void {
  const lines = new Map<string, TableRow[]>();
  for (const row of rows) {
    const name = row.fault.includes(" + ") ? "mixed" : row.fault;
    lines.set(name, [...(lines.get(name) ?? []), row]);
  }
  console.log(
    "| fault | histories | calls | answered | refused | failed | unreached | unknown | violations | worst recovery | holds released after | admitted after revocation | full minutes exact | p50 / p99 / max ms |",
  );
  console.log("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
  for (const [name, of] of lines) console.log(lineOf(name, of));
  if (lines.size > 1) console.log(lineOf("**all**", rows));
  const sum = (value: (row: TableRow) => number) => rows.reduce((total, row) => total + value(row), 0);
  const limited = METRICS.map((metric) => `${sum(({ limited }) => limited.get(metric) ?? 0)} by ${metric}`);
  console.log(
    `\n${sum((row) => row.dropped)} calls dropped, ${sum((row) => row.late)} sent more than 50 ms late, ${sum((row) => row.left)} disconnects; ` +
      `${sum((row) => row.executions)} executions, ${sum((row) => row.rows)} rows; ` +
      `${sum((row) => row.rowChecks)} ledger entries checked on arrival of the reply; ` +
      `${sum((row) => row.moneyChecks)} checks of balances and limits against the ledger; ` +
      `refused by limits: ${limited.join(", ")}`,
  );
}

function lineOf(name: string, rows: readonly TableRow[]): string {
  const sum = (value: (row: TableRow) => number) => rows.reduce((total, row) => total + value(row), 0);
  const most = (value: (row: TableRow) => number) => Math.max(...rows.map(value));
  const back = rows.filter(({ orphans }) => orphans > 0).map(({ givenBackMs }) => givenBackMs ?? Number.POSITIVE_INFINITY);
  const cells = [
    name,
    rows.length,
    sum((row) => row.calls),
    sum((row) => row.ok),
    sum((row) => row.refused),
    sum((row) => row.failed),
    sum((row) => row.unreached),
    sum((row) => row.unknown),
    sum((row) => row.violations),
    seconds(most((row) => row.recoveryMs)),
    back.length === 0 ? "–" : `${seconds(Math.max(...back))} (${sum((row) => row.orphans)})`,
    `${sum((row) => row.afterRevoke.admitted)} of ${sum((row) => row.afterRevoke.after)}`,
    `${sum((row) => row.exactness.exact)} of ${sum((row) => row.exactness.full)}`,
    `${Math.round(most((row) => row.p50Ms))} / ${Math.round(most((row) => row.p99Ms))} / ${Math.round(most((row) => row.maxMs))}`,
  ];
  return `| ${cells.join(" | ")} |`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
