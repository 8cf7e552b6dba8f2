import { setTimeout as wait } from "node:timers/promises";
import type { Arena } from "./arena.ts";
import { ofCells } from "./checker/facts.ts";

const LOOK_MS = 500;
const GIVE_UP_MS = 50_000;
/** Consecutive faults may interrupt heartbeats repeatedly. */
const MAX_WATCH_MS = 100_000;

export type GivenBack = {
  readonly serverId: string;
  readonly holds: number;
  readonly killedAt: number;
  readonly givenBackAt: number | undefined;
  readonly wasDatabaseAway: boolean;
  /** Start of the longest uninterrupted presence of a server that could release the holds. */
  readonly judgedSince: number;
};

/** After a server was killed: how many holds it left, and when the last of them was released. */
export async function watchHolds(arena: Arena, serverId: string): Promise<GivenBack> {
  const killedAt = performance.now();
  let holds = 0;
  let wasDatabaseAway = false;
  let judgedSince = killedAt;
  const isOver = () => {
    const now = performance.now();
    return now - Math.max(killedAt, judgedSince) > GIVE_UP_MS || now - killedAt > MAX_WATCH_MS;
  };
  while (!isOver()) {
    const open = await countHolds(arena, serverId);
    if (open === 0) {
      const givenBackAt = performance.now();
      return { serverId, holds, killedAt, givenBackAt, wasDatabaseAway, judgedSince };
    }
    judgedSince = (await longestPresence(arena, serverId)) ?? judgedSince;
    if (open === undefined) wasDatabaseAway = true;
    holds = Math.max(holds, open ?? 0);
    await wait(LOOK_MS);
  }
  return { serverId, holds, killedAt, givenBackAt: undefined, wasDatabaseAway, judgedSince };
}

/**
 * When the server that has been alive for longest started, in that of the cells with holds of the dead server where this was
 * last. Undefined if none is known.
 */
async function longestPresence(arena: Arena, deadServerId: string): Promise<number | undefined> {
  try {
    const rows = await ofCells(
      arena.owners,
      (owner) => owner<{ ms: number | null }[]>`
        SELECT (extract(epoch FROM max(clock_timestamp() - present_since)) * 1000)::float8 AS ms FROM servers
        WHERE id <> ${deadServerId} AND seen_at > clock_timestamp() - interval '5 seconds'
        HAVING EXISTS (SELECT 1 FROM holds WHERE server_id = ${deadServerId})`,
    );
    const times = rows.map(({ ms }) => ms).filter((ms) => ms !== null);
    return times.length === 0 ? undefined : performance.now() - Math.min(...times);
  } catch {
    return undefined;
  }
}

/** Returns undefined while the database is unreachable. */
export async function countHolds(arena: Arena, serverId: string): Promise<number | undefined> {
  try {
    const rows = await ofCells(arena.owners, (owner) => owner`SELECT 1 FROM holds WHERE server_id = ${serverId}`);
    return rows.length;
  } catch {
    return undefined;
  }
}
