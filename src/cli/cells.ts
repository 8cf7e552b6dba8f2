import { randomUUID } from "node:crypto";
import * as sql from "../../gen/sql/calls.ts";
import { APP_ROLE } from "../app/prepare-database.ts";
import type { CellToMigrate } from "../database/cells/migrate-cell.ts";
import { abortSplit, SPLIT_STEPS, type SplitResult, splitCell } from "../database/cells/split-cell.ts";
import { Database } from "../database/driver/database.ts";
import { databaseUrlProblem } from "../database/driver/endpoints.ts";
import { LANE_COUNT, type Lane, laneRanges, lanesOfText, parseLanes } from "../domain/lane.ts";
import { EXIT_FAILED, orFailure, usageFailure } from "./failure.ts";
import { createProgress, printError, printResult, visible } from "./output.ts";
import { argument, flag, JSON_RESULT, option, type Values } from "./parameters.ts";
import { type Column, formatTable, type JsonOption } from "./print.ts";
import { command, noun } from "./row.ts";
import { shell } from "./shell.ts";
import { readCellSettings } from "./target.ts";

const EXAMPLE = "VX_CELLS=/etc/vx/cells.yaml vx cells status";
const splitting = {
  source: argument("<source>", "the name of the cell that gives up lanes"),
  to: option("--to <url>", "the standby; the login must own the tables and be allowed to promote it (required)"),
  lanes: option("--lanes <lanes>", "the lanes to move, such as 512-767,800 (required)"),
  abort: flag(
    "--abort",
    "in place of --to and --lanes: give the lanes of an unfinished split back to the source, for example if the standby is lost",
  ),
  json: JSON_RESULT,
};

export const row = noun([EXAMPLE], {
  status: command({
    about: "Show the cells of VX_CELLS and the lanes that they own. Exits with 1 if one cannot be reached.",
    parameters: { json: JSON_RESULT },
    examples: [EXAMPLE],
    run: showStatus,
  }),
  split: command({
    about:
      "Move lanes of a cell to a standby of its PostgreSQL, which becomes a cell. After an interruption, run the same command again to continue.",
    parameters: splitting,
    examples: [
      "VX_CELLS=cells.yaml vx cells split a --to postgres://postgres@standby/vx --lanes 512-1023",
      "VX_CELLS=cells.yaml vx cells split a --abort",
    ],
    run: runSplit,
  }),
});

const columns: readonly Column<CellState>[] = [
  { title: "NAME", value: ({ name }) => name },
  { title: "SCHEMA", value: ({ schema }) => schema },
  { title: "STATE", value: ({ problem }) => (problem === undefined ? "usable" : problem) },
  { title: "LANES", value: ({ lanes }) => String(lanes.length), align: "right" },
  { title: "OWNED", value: ({ lanes }) => laneRanges(lanes) },
];

async function showStatus({ json }: JsonOption): Promise<void> {
  const states = await Promise.all((await readCellSettings()).map(readState));
  const cells = states.map(({ lanes, ...cell }) => ({ ...cell, lanes: laneRanges(lanes) }));
  await printResult(json, { cells }, formatTable(columns, states));
  if (states.some(({ problem }) => problem !== undefined)) shell.exitCode = EXIT_FAILED;
}

const STATEMENT_TIMEOUT_MS = 5_000;

type CellState = {
  readonly name: string;
  readonly schema: string;
  readonly lanes: readonly Lane[];
  /** Why the cell cannot be used; undefined if it can. */
  readonly problem: string | undefined;
};

/** Asks the cell which lanes it owns. */
async function readState({ name, address, schema }: CellToMigrate): Promise<CellState> {
  const database = new Database(address, {
    name: "vx cells",
    role: APP_ROLE,
    schema,
    connections: 1,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    maxStatements: 1,
    maxWaitMs: STATEMENT_TIMEOUT_MS,
  });
  try {
    const [row] = await sql.cellState(database);
    const stored = row?.name ?? name;
    if (stored !== name) return { name, schema, lanes: [], problem: `the database is the cell "${stored}"` };
    return { name, schema, lanes: lanesOfText(row?.lanes ?? ""), problem: undefined };
  } catch (error) {
    const { message, cause } = error as Error;
    return { name, schema, lanes: [], problem: cause instanceof Error ? cause.message : message };
  } finally {
    await database.close();
  }
}

async function runSplit({ source: name, to, lanes, abort, json }: Values<typeof splitting>): Promise<void> {
  if (abort && (to !== undefined || lanes !== undefined)) throw usageFailure("--abort needs neither --to nor --lanes");
  const cells = await readCellSettings();
  const source = cells.find((cell) => cell.name === name);
  if (!source) throw usageFailure(`VX_CELLS has no cell "${name}"`);
  if (abort) {
    const kept = laneRanges(await orFailure(abortSplit(source)));
    const text = `The split is undone. The cell "${name}" owns the lanes ${kept}.\n`;
    return await printResult(json, { source: name, lanes: kept }, text);
  }
  if (to === undefined || lanes === undefined)
    throw usageFailure(`the option '${to === undefined ? "--to <url>" : "--lanes <lanes>"}' is missing`);
  await showSplit(name, await split(source, cells, to, readLanes(lanes)), json);
}

async function split(
  source: CellToMigrate,
  cells: readonly CellToMigrate[],
  to: string,
  lanes: readonly Lane[],
): Promise<SplitResult> {
  const problem = databaseUrlProblem(to);
  if (problem !== undefined) throw usageFailure(`--to ${problem}`);
  const progress = createProgress();
  let share = 0;
  const running = splitCell({
    source,
    cells,
    standby: { kind: "url", url: to },
    lanes,
    newId: () => `split_${randomUUID()}`,
    onStep: (step) => {
      share = (SPLIT_STEPS.indexOf(step) + 1) / SPLIT_STEPS.length;
      progress.show(share, step);
    },
    onWait: (reason) => progress.show(share, `waiting: ${visible(reason)}`),
  });
  return await orFailure(running.finally(progress.clear));
}

function readLanes(text: string): Lane[] {
  const lanes = parseLanes(text);
  if (!lanes || lanes.length === 0)
    throw usageFailure(`--lanes must be ranges of lanes such as 512-767,800, up to ${LANE_COUNT - 1}`);
  return lanes.sort((one, other) => one - other);
}

async function showSplit(source: string, result: SplitResult, isJson: boolean): Promise<void> {
  const { target, lanes: moved, unownedMs, slot } = result;
  const ms = unownedMs === undefined ? undefined : Math.round(unownedMs);
  const lanes = laneRanges(moved);
  const after = ms === undefined ? "" : `; calls to them waited for at least ${ms} ms`;
  const text = `The cell "${target}" owns the lanes ${lanes} now${after}.\n`;
  await printResult(isJson, { source, target, lanes, unowned_ms: ms, source_slot: slot }, text);
  if (slot !== undefined)
    await printError(
      `drop the replication slot ${visible(slot)} at the source: it keeps write-ahead log for a standby that no longer follows`,
    );
}
