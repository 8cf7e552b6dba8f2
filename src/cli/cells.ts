import { readCellStates } from "../app/cell-states.ts";
import { readCellSettings } from "./cell-settings.ts";
import { type Define, type JsonOption, withExamples } from "./command.ts";
import { EXIT_FAILED } from "./exit.ts";
import { printOut } from "./output.ts";
import { type Column, formatTable } from "./print.ts";

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
};

type CellState = Awaited<ReturnType<typeof readCellStates>>[number];

const columns: readonly Column<CellState>[] = [
  { title: "NAME", value: ({ name }) => name },
  { title: "SCHEMA", value: ({ schema }) => schema },
  { title: "STATE", value: ({ problem }) => (problem === undefined ? "usable" : problem) },
  { title: "LANES", value: ({ lanes }) => String(lanes.length), align: "right" },
  { title: "OWNED", value: ({ lanes }) => rangesOf(lanes) },
];

async function showStatus(options: JsonOption): Promise<void> {
  const states = await readCellStates(await readCellSettings());
  if (options.json) {
    const cells = states.map(({ lanes, ...cell }) => ({ ...cell, lanes: rangesOf(lanes) }));
    await printOut(`${JSON.stringify({ cells })}\n`);
  } else await printOut(formatTable(columns, states));
  if (states.some(({ problem }) => problem !== undefined)) process.exitCode = EXIT_FAILED;
}

/** The form of cells.yaml: "0-511,600". */
function rangesOf(lanes: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const lane of lanes) {
    const last = ranges.at(-1);
    if (last && last[1] === lane - 1) last[1] = lane;
    else ranges.push([lane, lane]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(",");
}
