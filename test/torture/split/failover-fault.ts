import { setTimeout as wait } from "node:timers/promises";
import type { SplitStep } from "../../../src/database/cells/split-cell.ts";
import { laneRanges } from "../../../src/domain/lane.ts";
import { urlTo } from "../../support/embedded.ts";
import type { ArenaCell } from "../cells.ts";
import { socketPathOf } from "../database.ts";
import type { Replication } from "../failover/replication.ts";
import type { Fault } from "../faults/fault.ts";
import { Line } from "../line.ts";
import { halfOf, OWNERS_RULE, problemsOf, type SplitArguments, split, splitAndDie } from "./split-fault.ts";

/** Time that a failover manager takes to detect the failure. */
const DETECTION_MS = 1_000;
/** A standby that has received more than the one that is promoted cannot follow it, so it gets everything later. */
const BEHIND_MS = 50;
const FINISHED_MS = 60_000;
const PAUSE_MS = 500;

/**
 * The command that splits the first cell is killed after a step, and so is the PostgreSQL of that cell. Its synchronous standby is
 * promoted, the standby of the split follows it, and the command is run again until it finishes the split.
 */
export function splitAndFailOver(step: SplitStep, replication: Replication): Fault {
  let source: ArenaCell | undefined;
  let standby: ArenaCell | undefined;
  let wire: Line | undefined;
  return {
    name: `split, its source fails over after "${step}"`,
    lastsSeconds: 12,
    prepare: async ({ cells, servers }) => {
      source = cells.all[0] as ArenaCell;
      wire = await Line.start({ path: socketPathOf(source.server) });
      standby = await cells.attach(source, servers, `host=127.0.0.1 port=${wire.port}`);
      // The copy is made without the delay.
      wire.set({ latencyMs: BEHIND_MS });
      await replication.attachStandby();
    },
    strike: async ({ arena: { cells, database }, onDatabaseKill, onHealed, onViolation }) => {
      if (!source || !standby || !wire) throw new Error("the standby is not attached");
      const lanes = await halfOf(source);
      const args: SplitArguments = [source.name, urlTo(standby.server), laneRanges(lanes)];
      await splitAndDie(cells, step, args, onViolation);
      wire.set({ refuses: true });
      wire.cut();
      database.kill();
      await replication.disconnect();
      onDatabaseKill();
      await wait(DETECTION_MS);
      await replication.promote();
      wire.retarget({ path: database.socketPath });
      wire.set({});
      const until = performance.now() + FINISHED_MS;
      for (;;) {
        const { code, text } = await split(cells, args);
        if (code === 0) break;
        if (performance.now() > until) {
          onViolation("the split succeeds", text);
          break;
        }
        await wait(PAUSE_MS);
      }
      onHealed();
      for (const problem of await problemsOf(cells)) onViolation(OWNERS_RULE, problem);
      await wire.stop();
    },
  };
}
