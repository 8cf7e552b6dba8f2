import { expect, test } from "vitest";
import { CellDirectory } from "../../src/cells/cell-directory.ts";
import { LANE_COUNT, type Lane } from "../../src/domain/lane.ts";
import type { Cell } from "../../src/store/driver/cells.ts";
import { LaneMoved } from "../../src/store/driver/store-error.ts";

const ALL_LANES: Lane[] = Array.from(Array(LANE_COUNT).keys());
/** 5 s, of which a silent cell uses 0.5 s for each reading of the owners. */
const MAX_SENDS = 11;

function cellNamed(name: string, assumedLanes: readonly Lane[], call: () => Promise<unknown[]>) {
  const pool: Cell = {
    call: <Row>() => call() as Promise<Row[]>,
    requireWritable: () => Promise.resolve(),
    findNewerPrimary: () => Promise.resolve(),
    during: (_name, _parameter, work) => work(),
  };
  return { name, pool, assumedLanes, prepare: () => Promise.resolve() };
}

const STATE = { lanes: ALL_LANES.join(","), epochs: ALL_LANES.map(() => 1).join(","), shared_version: 0n, name: null };

test("while another cell does not respond, a call whose lane moved is not repeated for longer", async () => {
  const owner = cellNamed("a", ALL_LANES, () => Promise.resolve([STATE]));
  const silent = cellNamed("b", [], () => new Promise<never>(() => undefined));
  const directory = new CellDirectory([owner, silent], () => undefined);
  let sends = 0;
  const refuse = () => {
    sends++;
    return Promise.reject(new LaneMoved());
  };
  await expect(directory.route(7, refuse)).rejects.toBeInstanceOf(LaneMoved);
  expect(sends).toBeGreaterThan(1);
  expect(sends).toBeLessThanOrEqual(MAX_SENDS);
});
