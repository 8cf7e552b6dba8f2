import { randomUUID } from "node:crypto";
import type { Command } from "commander";
import { SPLIT_STEPS, type SplitResult, splitCell } from "../app/split-cell.ts";
import { LANE_COUNT, type Lane, laneRanges, parseLanes } from "../domain/lane.ts";
import { databaseUrlProblem } from "../store/driver/endpoints.ts";
import { readCellSettings } from "./cell-settings.ts";
import { type JsonOption, requiredOption, withExamples } from "./command.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { printError, printOut } from "./output.ts";
import { createProgress } from "./progress.ts";
import { visible } from "./visible.ts";

type Options = JsonOption & { readonly to: string; readonly lanes: string };

export function defineSplit(command: Command): void {
  withExamples(command, [
    "VX_CELLS=cells.yaml vx cells split a --to postgres://postgres@standby/vx --lanes 512-1023",
  ])
    .description(
      "Move lanes of a cell to a standby of its PostgreSQL, which becomes a cell. After an interruption, run the same command again to continue.",
    )
    .argument("<source>", "the name of the cell that gives up lanes")
    .option("--json", "print the result as JSON")
    .action(split);
  requiredOption(
    command,
    "--to <url>",
    "the standby; the login must own the tables and be allowed to promote it",
  );
  requiredOption(command, "--lanes <lanes>", "the lanes to move, such as 512-767,800");
}

async function split(name: string, options: Options): Promise<void> {
  const cells = await readCellSettings();
  const source = cells.find((cell) => cell.name === name);
  if (!source) throw usageFailure(`VX_CELLS has no cell "${name}"`);
  const lanes = readLanes(options.lanes);
  const problem = databaseUrlProblem(options.to);
  if (problem !== undefined) throw usageFailure(`--to ${problem}`);
  const progress = createProgress(process.stderr);
  let share = 0;
  let text = "starting";
  const show = () => progress.show(share, text);
  let result: SplitResult;
  try {
    result = await splitCell({
      source,
      cells,
      standby: { kind: "url", url: options.to },
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
  await printResult(name, result, options.json === true);
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
