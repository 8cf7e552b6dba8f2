import { distributionOf } from "../database/cells/citus/distribution.ts";
import { migrateCell } from "../database/cells/migrate-cell.ts";
import type { DatabaseAddress } from "../database/driver/connect.ts";
import { type Distribution, migrate, readSchemaStatus, type SchemaChanges } from "../database/schema/migrate.ts";
import { MigrationError } from "../database/schema/release.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { printResult } from "./output.ts";
import { flag } from "./parameters.ts";
import { type Column, formatTable } from "./print.ts";
import { command } from "./row.ts";
import { readCellSettings, readSettings } from "./target.ts";

export const row = command({
  parameters: {
    dryRun: flag("--dry-run", "list what would be applied, and change nothing"),
    status: flag("--status", "list all migrations with the time at which they were applied", ["dryRun"]),
    json: flag("--json", "print JSON: a line for each database"),
  },
  examples: [
    "DATABASE_URL=postgres://owner@db.example/vx vx migrate",
    "DATABASE_URL=postgres://owner@db.example/vx vx migrate --dry-run",
    "VX_CELLS=/etc/vx/cells.yaml vx migrate --status",
  ],
  run: async ({ dryRun, status, json }) => {
    const act = status ? showStatus : dryRun ? listPending : apply;
    // A cell that cannot be migrated does not prevent the migration of the others.
    const problems: string[] = [];
    for (const target of await readTargets()) {
      try {
        const { text, value } = await act(target);
        await printResult(json, { cell: target.cell ?? "", ...value }, text);
      } catch (error) {
        if (!(error instanceof MigrationError)) throw error;
        problems.push(prefixOf(target) + error.message);
      }
    }
    if (problems.length > 0) throw new CommandFailure(problems.join("\n"));
  },
});

/** A database whose schema is migrated. */
type Target = {
  /** Undefined for the only database. */
  readonly cell: string | undefined;
  readonly address: DatabaseAddress;
  readonly schema?: string;
  readonly distribution?: Distribution | undefined;
  readonly migrate: () => Promise<SchemaChanges>;
};

async function readTargets(): Promise<readonly Target[]> {
  const { databaseUrl, cellsFile } = readSettings(["DATABASE_URL", "VX_CELLS"]);
  if (cellsFile !== undefined) {
    const cells = await readCellSettings();
    return cells.map((cell) => ({
      cell: cell.name,
      address: cell.address,
      schema: cell.schema,
      distribution: distributionOf(cell.engine),
      migrate: () => migrateCell(cell, cells),
    }));
  }
  if (databaseUrl === undefined) {
    throw usageFailure(
      "DATABASE_URL and VX_CELLS are not set; set one of them to the database to migrate ('vx serve' migrates the embedded database)",
    );
  }
  const address: DatabaseAddress = { kind: "url", url: databaseUrl };
  return [{ cell: undefined, address, migrate: () => migrate(address) }];
}

/** What a command did or found, for people and as JSON. */
type Result = { readonly text: string; readonly value: object };

async function apply(target: Target): Promise<Result> {
  const changes = await target.migrate();
  const lines = linesOf(target, changes, ["applied", "moved"]);
  return { text: `${lines}${upToDate(target)}`, value: changesJson(changes) };
}

async function listPending(target: Target): Promise<Result> {
  const { tables, functions, moves } = await readSchemaStatus(target.address, target);
  const pending = tables.filter(({ appliedAt }) => appliedAt === undefined).map(({ name }) => name);
  const changes = { tables: pending, functions, moves };
  const text = linesOf(target, changes, ["would apply", "would move"]) || upToDate(target);
  return { text, value: changesJson(changes) };
}

function changesJson({ tables, functions, moves }: SchemaChanges) {
  const moved = moves.map(({ partition, entries }) => ({ partition, entries: Number(entries) }));
  return { tables, functions, moves: moved };
}

function linesOf(target: Target, { tables, functions, moves }: SchemaChanges, [apply, move]: readonly [string, string]): string {
  const texts = [
    ...[...tables, ...(functions > 0 ? [countOf(functions, "function")] : [])].map((text) => `${apply} ${text}`),
    ...moves.map(
      ({ partition, entries }) =>
        `${move} ${countOf(Number(entries), "ledger entry", "ledger entries")} to the new partition ${partition}`,
    ),
  ];
  return texts.map((text) => `${prefixOf(target)}${text}\n`).join("");
}

function countOf(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}

function upToDate({ cell }: Target): string {
  return `The schema of the ${cell === undefined ? "database" : `cell "${cell}"`} is up to date.\n`;
}

function prefixOf({ cell }: Target): string {
  return cell === undefined ? "" : `${cell}: `;
}

const statusColumns: readonly Column<{ readonly cell: string; readonly name: string; readonly state: string }>[] = [
  { title: "CELL", value: ({ cell }) => cell },
  { title: "MIGRATION", value: ({ name }) => name },
  { title: "APPLIED", value: ({ state }) => state },
];

async function showStatus(target: Target): Promise<Result> {
  const { tables, functions } = await readSchemaStatus(target.address, target);
  const cell = target.cell ?? "";
  const migrations = tables.map(({ name, appliedAt }) => ({
    name,
    applied_at: appliedAt?.toISOString().replace(/\.\d+Z$/, "Z") ?? null,
  }));
  const rows = migrations.map(({ name, applied_at: at }) => ({ cell, name, state: at ?? "pending" }));
  const state = functions === 0 ? "up to date" : `${functions} pending`;
  const text = formatTable(statusColumns, [...rows, { cell, name: "functions", state }]);
  return { text, value: { migrations, pending_functions: functions } };
}
