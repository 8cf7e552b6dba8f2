import { expect, test, vi } from "vitest";
import { CellDirectory, LaneMap } from "../../src/database/cells/cell-directory.ts";
import type { Cell } from "../../src/database/driver/cells.ts";
import { LaneMoved } from "../../src/database/driver/store-error.ts";
import { LANE_COUNT, type Lane } from "../../src/domain/lane.ts";

const ALL_LANES: Lane[] = Array.from(Array(LANE_COUNT).keys());
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

test("while another cell does not respond, a call whose lane moved is not repeated for longer than 5 s", async () => {
  const owner = cellNamed("a", ALL_LANES, () => Promise.resolve([STATE]));
  const silent = cellNamed("b", [], () => new Promise<never>(() => undefined));
  const directory = new CellDirectory([owner, silent], () => undefined);
  const deadline = new AbortController();
  const timeout = vi.spyOn(AbortSignal, "timeout").mockReturnValue(deadline.signal);
  let sends = 0;
  const refuse = () => {
    if (++sends === 2) deadline.abort();
    return Promise.reject(new LaneMoved());
  };
  await expect(directory.route(7, refuse)).rejects.toBeInstanceOf(LaneMoved);
  expect(sends).toBe(2);
  expect(timeout.mock.calls).toEqual([[5_000]]);
  timeout.mockRestore();
});

test("a lane belongs to the cell whose claim has the highest epoch", () => {
  const map = new LaneMap([[1, 2], [3]]);
  expect([1, 2, 3].map((lane) => map.ownerOf(lane))).toEqual([0, 0, 1]);
  map.record(0, new Map([[1, 4n]]));
  map.record(1, new Map([[1, 3n]]));
  expect([1, 2, 3].map((lane) => map.ownerOf(lane))).toEqual([0, undefined, undefined]);
  map.record(1, new Map([[1, 5n]]));
  expect(map.ownerOf(1)).toBe(1);
  expect(map.unowned.length).toBe(1_023);
});

test("a lane that two cells claim with the same epoch has no owner", () => {
  const map = new LaneMap([[], [], []]);
  for (const cell of [0, 1]) map.record(cell, new Map([[7, 2n]]));
  expect(map.ownerOf(7)).toBeUndefined();
  map.record(2, new Map([[7, 1n]]));
  expect(map.ownerOf(7)).toBeUndefined();
  map.record(2, new Map([[7, 3n]]));
  expect(map.ownerOf(7)).toBe(2);
});
