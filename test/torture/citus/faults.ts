import { setTimeout as wait } from "node:timers/promises";
import type { Node } from "../../citus/cluster.ts";
import { runAudit } from "../audit.ts";
import { pausePostgres } from "../database.ts";
import type { Fault, FaultScene } from "../faults/fault.ts";
import type { RunServer } from "../server.ts";
import type { CitusCell, CitusStore } from "./store.ts";

const DOWN_MS = 4_000;
/** A server checks its cells once a second. */
const NAMED_WITHIN_MS = 9_000;
const READY_RULE = "a failed worker leaves servers ready, and /readyz names its cells";
const MOVE_RULE = "a schema moves";

type Moves = {
  readonly count: number;
  readonly cell?: string;
  /** Whether an audit runs beside each move. */
  readonly isAudited?: boolean;
  readonly onMove: (ms: number) => void;
};

/** Schemas move to the other worker, one after the other. Callers notice nothing but latency. */
export function moveSchemas({ count, cell: only, isAudited = false, onMove }: Moves): Fault {
  return {
    name: `${count} moves of ${only === undefined ? "schemas" : `the schema of cell ${only}`}`,
    isHarmless: true,
    lastsSeconds: count * 4,
    strike: async ({ arena, onViolation }) => {
      const { citus } = arena;
      for (let i = 0; i < count; i++) {
        const cells = citus.cells.filter(({ name }) => only === undefined || name === only);
        const cell = cells[i % cells.length] as CitusCell;
        const target = await otherWorker(citus, cell);
        const startedAt = performance.now();
        const audited = isAudited ? runAudit(arena) : [];
        await citus.move(cell, target);
        onMove(performance.now() - startedAt);
        for (const { rule, text } of await audited) onViolation(rule, `during a move: ${text}`);
        if ((await citus.workerOf(cell)) !== target) onViolation(MOVE_RULE, `${cell.name} is not at its target`);
      }
    },
  };
}

/** Sends SIGKILL to the worker of a cell. Calls of the other cell must not fail. */
export function killWorker(cell: string): Fault {
  return {
    name: `worker of cell ${cell} killed`,
    lastsSeconds: DOWN_MS / 1_000,
    prepare: ({ citus }) => citus.separate(),
    strike: async (scene) => {
      const { arena, onDatabaseKill } = scene;
      const worker = await failingWorker(scene, cell);
      arena.citus.kill(worker);
      onDatabaseKill();
      await Promise.all([wait(DOWN_MS), expectNamed(scene, cell)]);
      await arena.citus.revive();
    },
  };
}

/** Stops the worker of a cell for longer than the timeout of a statement. */
export function pauseWorker(cell: string, seconds: number): Fault {
  return {
    name: `worker of cell ${cell} stopped for ${seconds} s`,
    lastsSeconds: seconds,
    prepare: ({ citus }) => citus.separate(),
    strike: async (scene) => {
      const resume = pausePostgres(await failingWorker(scene, cell));
      await wait(seconds * 1_000);
      resume();
    },
  };
}

/** Servers go on with the workers that they use. */
export const killCoordinator: Fault = {
  name: "coordinator killed",
  isHarmless: true,
  lastsSeconds: DOWN_MS / 1_000,
  strike: async ({ arena: { citus } }) => {
    citus.kill(citus.coordinator);
    await wait(DOWN_MS);
    await citus.revive();
  },
};

/** A worker is killed while a schema moves from it or to it. The move fails, and the next one succeeds. */
export function killDuringMove(end: "source" | "target", afterMs: number): Fault {
  return {
    name: `${end} of a move killed after ${afterMs} ms`,
    lastsSeconds: DOWN_MS / 1_000 + 4,
    prepare: ({ citus }) => citus.separate(),
    strike: async (scene) => {
      const { arena, onDatabaseKill } = scene;
      const { citus } = arena;
      const [, cell] = citus.cells as readonly [CitusCell, CitusCell];
      const target = await otherWorker(citus, cell);
      // The other cell is at the target.
      const failing = end === "source" ? "b" : "a";
      const worker = await failingWorker(scene, failing);
      const moved = citus.move(cell, target).catch(() => undefined);
      await wait(afterMs);
      citus.kill(worker);
      onDatabaseKill();
      await Promise.all([moved, wait(DOWN_MS)]);
      await citus.revive();
    },
  };
}

/** Returns the only worker of the cell, whose lanes may fail from now on. */
async function failingWorker({ arena: { citus }, onCellFailure }: FaultScene, name: string): Promise<Node> {
  const cell = citus.cells.find((each) => each.name === name) as CitusCell;
  onCellFailure(cell.lanes);
  return await citus.workerOf(cell);
}

async function otherWorker(citus: CitusStore, cell: CitusCell): Promise<Node> {
  const current = await citus.workerOf(cell);
  return citus.workers.find((worker) => worker !== current) as Node;
}

/** Waits until every server names the cell. */
async function expectNamed({ arena, onViolation }: FaultScene, cell: string): Promise<void> {
  const until = performance.now() + NAMED_WITHIN_MS;
  await Promise.all(
    arena.servers.map(async (server) => {
      for (;;) {
        const { status, text } = await readiness(server);
        if (status !== 200 && status !== 0) onViolation(READY_RULE, `/readyz is ${status}: ${text}`);
        if (status !== 200 || text.includes(`the cell "${cell}"`)) return;
        if (performance.now() > until) return onViolation(READY_RULE, `/readyz says ${JSON.stringify(text)}`);
        await wait(50);
      }
    }),
  );
}

/** The status is 0 if another fault has killed the server. */
async function readiness({ url }: RunServer): Promise<{ status: number; text: string }> {
  try {
    const response = await fetch(`${url}/readyz`);
    return { status: response.status, text: await response.text() };
  } catch {
    return { status: 0, text: "" };
  }
}
