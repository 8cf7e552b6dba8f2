import { setTimeout as wait } from "node:timers/promises";
import type { Arena } from "./arena.ts";

const LOOK_MS = 500;
const GIVE_UP_MS = 50_000;

export type GivenBack = {
  readonly serverId: string;
  readonly holds: number;
  readonly killedAt: number;
  readonly givenBackAt: number | undefined;
  readonly wasDatabaseAway: boolean;
};

/** After a server was killed: how many holds it left, and when the last of them was given back. */
export async function watchHolds(arena: Arena, serverId: string): Promise<GivenBack> {
  const killedAt = performance.now();
  let holds = 0;
  let wasDatabaseAway = false;
  while (performance.now() - killedAt < GIVE_UP_MS) {
    const open = await countHolds(arena, serverId);
    if (open === 0) return { serverId, holds, killedAt, givenBackAt: performance.now(), wasDatabaseAway };
    if (open === undefined) wasDatabaseAway = true;
    holds = Math.max(holds, open ?? 0);
    await wait(LOOK_MS);
  }
  return { serverId, holds, killedAt, givenBackAt: undefined, wasDatabaseAway };
}

/** Undefined while the database is away. */
export async function countHolds(arena: Arena, serverId: string): Promise<number | undefined> {
  try {
    const [row] = await arena.database.owner<{ count: number }[]>`
      SELECT count(*)::integer AS count FROM vx.holds WHERE server_id = ${serverId}`;
    return row?.count;
  } catch {
    return undefined;
  }
}
