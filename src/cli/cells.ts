import { randomUUID } from "node:crypto";
import * as sql from "../../gen/sql/calls.ts";
import { APP_ROLE } from "../app/prepare-database.ts";
import type { CellToMigrate } from "../cells/migrate-cell.ts";
import { abortSplit, SPLIT_STEPS, type SplitResult, splitCell } from "../cells/split-cell.ts";
import { LANE_COUNT, type Lane, laneRanges, lanesOfText, parseLanes } from "../domain/lane.ts";
import { Database } from "../store/driver/database.ts";
import { databaseUrlProblem } from "../store/driver/endpoints.ts";
import { CommandFailure, EXIT_FAILED, usageFailure } from "./failure.ts";
import { createProgress, printError, printOut, visible } from "./output.ts";
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

async function showStatus(options: JsonOption): Promise<void> {
  const states = await readCellStates(await readCellSettings());
  if (options.json) {
    const cells = states.map(({ lanes, ...cell }) => ({ ...cell, lanes: laneRanges(lanes) }));
    await printOut(`${JSON.stringify({ cells })}\n`);
  } else await printOut(formatTable(columns, states));
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

/** Asks each cell which lanes it owns. */
async function readCellStates(cells: readonly CellToMigrate[]): Promise<readonly CellState[]> {
  return await Promise.all(cells.map(readState));
}

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
    await abortUnfinished(source, json);
    return;
  }
  if (to === undefined || lanes === undefined)
    throw usageFailure(`the option '${to === undefined ? "--to <url>" : "--lanes <lanes>"}' is missing`);
  await split(source, cells, { to, lanes: readLanes(lanes), isJson: json });
}

async function abortUnfinished(source: CellToMigrate, isJson: boolean): Promise<void> {
  let lanes: string;
  try {
    lanes = laneRanges(await abortSplit(source));
  } catch (error) {
    throw new CommandFailure((error as Error).message);
  }
  await printOut(
    isJson
      ? `${JSON.stringify({ source: source.name, lanes })}\n`
      : `The split is undone. The cell "${source.name}" owns the lanes ${lanes}.\n`,
  );
}

type SplitArguments = { readonly to: string; readonly lanes: readonly Lane[]; readonly isJson: boolean };

async function split(
  source: CellToMigrate,
  cells: readonly CellToMigrate[],
  { to, lanes, isJson }: SplitArguments,
): Promise<void> {
  const problem = databaseUrlProblem(to);
  if (problem !== undefined) throw usageFailure(`--to ${problem}`);
  const progress = createProgress();
  let share = 0;
  let text = "starting";
  const show = () => progress.show(share, text);
  let result: SplitResult;
  try {
    result = await splitCell({
      source,
      cells,
      standby: { kind: "url", url: to },
      lanes,
      newId: () => `split_${randomUUID()}`,
      onStep: (step) => {
        [share, text] = [(SPLIT_STEPS.indexOf(step) + 1) / SPLIT_STEPS.length, step];
        show();
      },
      onWait: (reason) => {
        text = `waiting: ${visible(reason)}`;
        show();
      },
    });
  } catch (error) {
    throw new CommandFailure((error as Error).message);
  } finally {
    progress.clear();
  }
  await printResult(source.name, result, isJson);
}

function readLanes(text: string): Lane[] {
  const lanes = parseLanes(text);
  if (!lanes || lanes.length === 0)
    throw usageFailure(`--lanes must be ranges of lanes such as 512-767,800, up to ${LANE_COUNT - 1}`);
  return lanes.sort((one, other) => one - other);
}

async function printResult(source: string, result: SplitResult, isJson: boolean): Promise<void> {
  const { target, lanes, unownedMs, slot } = result;
  const ms = unownedMs === undefined ? undefined : Math.round(unownedMs);
  if (isJson) {
    const moved = { source, target, lanes: laneRanges(lanes), unowned_ms: ms, source_slot: slot };
    await printOut(`${JSON.stringify(moved)}\n`);
  } else {
    const after = ms === undefined ? "" : `; calls to them waited for at least ${ms} ms`;
    await printOut(`The cell "${target}" owns the lanes ${laneRanges(lanes)} now${after}.\n`);
  }
  if (slot !== undefined)
    await printError(
      `drop the replication slot ${visible(slot)} at the source: it keeps write-ahead log for a standby that no longer follows`,
    );
}
