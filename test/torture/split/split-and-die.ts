// Splits a cell and sends SIGKILL to itself as soon as a step is done: node split-and-die.ts STEP SOURCE URL LANES, with VX_CELLS.
import { randomUUID } from "node:crypto";
import { readCells } from "../../../src/app/settings/cells.ts";
import { splitCell } from "../../../src/database/cells/split-cell.ts";
import { parseLanes } from "../../../src/domain/lane.ts";

const [last, name, url = "", lanes = ""] = process.argv.slice(2);
const cells = (await readCells(process.env.VX_CELLS)) ?? [];
const source = cells.find((cell) => cell.name === name);
if (!source) throw new Error(`there is no cell ${name}`);
await splitCell({
  source,
  cells,
  standby: { kind: "url", url },
  lanes: parseLanes(lanes) ?? [],
  newId: () => `split_${randomUUID()}`,
  onStep: (step) => {
    if (step === last) process.kill(process.pid, "SIGKILL");
  },
  onWait: (reason) => console.error(reason),
});
