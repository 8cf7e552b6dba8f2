import { setTimeout as wait } from "node:timers/promises";
import type { Lane } from "../../../src/domain/lane.ts";
import type { Arena } from "../arena.ts";
import type { ArenaCell } from "../cells.ts";
import type { Fault, FaultScene } from "./fault.ts";

const DOWN_MS = 1_500;

/** Sends SIGKILL to the PostgreSQL of a cell that is not the first one, and restarts it. */
export const killCell: Fault = {
  name: "cell killed",
  strike: async (scene) => {
    const cell = await failingCell(scene);
    scene.arena.database.kill(cell.server);
    scene.onDatabaseKill();
    await wait(DOWN_MS);
    await cell.restart();
  },
};

/** Stops the PostgreSQL of a cell for longer than the timeout of a statement. */
export function pauseCell(seconds: number): Fault {
  return {
    name: `cell stopped for ${seconds} s`,
    lastsSeconds: seconds,
    strike: async (scene) => {
      const cell = await failingCell(scene);
      const resume = scene.arena.database.pause(cell.server);
      await wait(seconds * 1_000);
      resume();
    },
  };
}

/** Servers lose their connections to a cell, and cannot open others for a while. */
export const cutCell: Fault = {
  name: "cell cut off",
  lastsSeconds: 3,
  strike: async (scene) => {
    const { lines } = await failingCell(scene);
    for (const line of lines) {
      line.set({ refuses: true });
      line.cut();
    }
    await wait(3_000);
    for (const line of lines) line.set({});
  },
};

/** The second cell of the arena. Its accounts alone are affected. */
async function failingCell({ arena, onCellFailure }: FaultScene): Promise<ArenaCell> {
  const cell = secondCellOf(arena);
  const rows = await cell.owner<{ lane: Lane }[]>`SELECT lane FROM vx.lanes WHERE is_owned`;
  onCellFailure(rows.map(({ lane }) => lane));
  return cell;
}

function secondCellOf({ cells }: Arena): ArenaCell {
  const [, second] = cells.all;
  if (!second) throw new Error("there is only one cell");
  return second;
}
