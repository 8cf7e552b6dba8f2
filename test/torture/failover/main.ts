// Fails over from a primary PostgreSQL to its standby under load: npm run test:failover [-- --short --seed N --rounds N].
import { parseArgs } from "node:util";
import type { Violation } from "../checker/facts.ts";
import type { TableRow } from "../report.ts";
import { runRound } from "../round.ts";
import { printSettings, printViolations, withArena } from "../torture.ts";
import { failOver, LOSSES } from "./fail-over.ts";
import { Replication, type ReplicationMode } from "./replication.ts";

const { values } = parseArgs({
  options: {
    short: { type: "boolean", default: false },
    seed: { type: "string", default: "1" },
    rounds: { type: "string", default: "4" },
  },
});
const [seed, rounds] = [Number(values.seed), Number(values.rounds)];
if (!Number.isSafeInteger(seed) || !Number.isSafeInteger(rounds) || rounds < 1) {
  console.error("--seed and --rounds are whole numbers");
  process.exit(2);
}
const MODES: readonly ReplicationMode[] = [
  { isSynchronous: true, lagMs: 0 },
  { isSynchronous: false, lagMs: 0 },
  { isSynchronous: false, lagMs: 250 },
];
const SHORT_MODES = [{ isSynchronous: true, lagMs: 0 }];
const PATIENCE_MS = 100_000;

printSettings(seed);
const startedAt = performance.now();
const table: TableRow[] = [];
const violations: Violation[] = [];
for (const [i, mode] of (values.short ? SHORT_MODES : MODES).entries()) {
  const result = await withArena({ servers: 2, hasStandby: true }, async (arena) => {
    const replication = new Replication(arena, mode);
    const once = (values.short ? LOSSES.slice(0, 1) : LOSSES).map((loss) => [failOver(loss, replication, mode)]);
    const scenes = Array.from({ length: values.short ? 1 : rounds }, () => once).flat();
    try {
      const first = i * 100 + 1;
      const load = { seconds: 5, perSecond: 100 };
      return await runRound({ arena, seed, first, ...load, scenes, say: console.log, patienceMs: PATIENCE_MS });
    } finally {
      await replication.stop();
    }
  });
  table.push(...result.table);
  violations.push(...result.violations);
}
print();
printViolations(violations);
const took = Math.round((performance.now() - startedAt) / 1_000);
console.log(`\n${violations.length} violations in ${took} s (seed ${seed})`);
// Exit explicitly: idle keep-alive connections of the clients would keep the process alive.
process.exit(violations.length === 0 ? 0 : 1);

function print(): void {
  console.log(
    "\n| primary, replication | failovers | calls | replies | failed | violations | longest outage of a server | failures end after the promotion | " +
      "lost replies | lost micros | lost broken streams | lost credits | lost revocations | lost keys | confirmed before the failure |",
  );
  console.log("|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|");
  for (const name of new Set(table.map(({ fault }) => fault))) {
    const rows = table.filter(({ fault }) => fault === name);
    const sum = (value: (row: TableRow) => number) => rows.reduce((total, row) => total + value(row), 0);
    const range = (value: (row: TableRow) => number) => {
      const all = rows.map(value).sort((a, b) => a - b);
      return `${seconds(all[Math.floor(all.length / 2)] ?? 0)}, at most ${seconds(all.at(-1) ?? 0)}`;
    };
    const cells = [
      name.replace(/^primary /, ""),
      rows.length,
      sum((row) => row.calls),
      sum((row) => row.ok),
      sum((row) => row.failed),
      sum((row) => row.violations),
      range((row) => row.outageMs),
      range((row) => row.recoveryMs),
      sum((row) => row.lost.replies),
      sum((row) => Number(row.lost.micros)),
      sum((row) => row.lost.brokenStreams),
      sum((row) => row.lost.credits),
      sum((row) => row.lost.revocations),
      sum((row) => row.lost.keys),
      `at most ${Math.round(Math.max(...rows.map((row) => row.lost.spanMs)))} ms`,
    ];
    console.log(`| ${cells.join(" | ")} |`);
  }
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
