import { readCellStates } from "../app/cell-states.ts";
import { laneRanges } from "../domain/lane.ts";
import { readCellSettings } from "./cell-settings.ts";
import { type Define, type JsonOption, withExamples } from "./command.ts";
import { EXIT_FAILED } from "./exit.ts";
import { printOut } from "./output.ts";
import { type Column, formatTable } from "./print.ts";
import { defineSplit } from "./split.ts";

export const define: Define = (group) => {
  const example = "VX_CELLS=/etc/vx/cells.yaml vx cells status";
  withExamples(group, [example]);
  const status = group
    .command("status")
    .description(
      "Show the cells of VX_CELLS and the lanes that they own. Exits with 1 if one cannot be reached.",
    )
    .option("--json", "print the result as JSON")
    .action(showStatus);
  withExamples(status, [example]);
  defineSplit(group.command("split"));
};

type CellState = Awaited<ReturnType<typeof readCellStates>>[number];

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
  if (states.some(({ problem }) => problem !== undefined)) process.exitCode = EXIT_FAILED;
}
