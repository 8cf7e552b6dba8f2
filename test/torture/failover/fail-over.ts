import { setTimeout as wait } from "node:timers/promises";
import postgres from "postgres";
import { loginTo } from "../../support/embedded.ts";
import type { PrimaryServer } from "../../support/standby.ts";
import type { Fault, FaultScene } from "../faults/fault.ts";
import type { Replication, ReplicationMode } from "./replication.ts";

/** Time that a failover manager takes to detect the failure. */
const DETECTION_MS = 1_000;
/** What happens to the primary. */
export type Loss = "killed" | "paused" | "cut off";
export const LOSSES: readonly Loss[] = ["killed", "paused", "cut off"];
/** PostgreSQL writes asynchronous commits to disk after at most three times its 200 ms delay. */
const FLUSH_MS = 700;
/** In this time the servers find a new primary although the old one responds. */
const MOVE_MS = 4_000;
/** Statements that an old primary received while it was paused are executed when it continues. */
const LATE_MS = 1_000;
const RULE = "nothing is written to an old primary";

/**
 * The primary fails and its standby is promoted. A paused primary continues afterwards; one that is cut off from the failover
 * manager alone never stops. Both still accept writes.
 */
export function failOver(loss: Loss, replication: Replication, { isSynchronous, lagMs }: ReplicationMode): Fault {
  return {
    name: `primary ${loss}, ${isSynchronous ? "synchronous" : `asynchronous, ${lagMs} ms lag`}`,
    lastsSeconds: loss === "killed" ? 1 : 8,
    prepare: () => replication.attachStandby(),
    strike: async (scene) => {
      const { database } = scene.arena;
      const failedAt = performance.now();
      let resume: () => void = () => undefined;
      if (loss === "killed") database.kill();
      if (loss === "paused") resume = database.pause();
      await replication.disconnect();
      scene.onDatabaseKill();
      await wait(DETECTION_MS);
      const old = await replication.promote();
      const promotedAt = performance.now();
      scene.onHealed();
      if (loss === "cut off") scene.onSplitBrain({ from: promotedAt, to: promotedAt + MOVE_MS });
      // Until the servers have moved, an old primary that runs also accepts writes.
      const lostUntil = loss === "cut off" ? promotedAt + MOVE_MS : promotedAt;
      if (!isSynchronous) scene.onCommitsLost({ from: failedAt - lagMs - FLUSH_MS, to: lostUntil });
      if (loss === "killed") return;
      await wait(MOVE_MS);
      resume();
      await expectUnused(scene, old);
      database.kill(old);
    },
  };
}

/** The old primary runs, but no server uses it. */
async function expectUnused({ onViolation }: FaultScene, old: PrimaryServer): Promise<void> {
  const owner = postgres({ ...loginTo(old), max: 1 });
  const count = async () => {
    const [row] = await owner<{ count: number }[]>`SELECT count(*)::int FROM vx.ledger`;
    return row?.count ?? 0;
  };
  await wait(LATE_MS);
  const before = await count();
  await wait(2_000);
  const after = await count();
  if (after !== before) onViolation(RULE, `${after - before} ledger entries`);
  await owner.end({ timeout: 1 });
}
