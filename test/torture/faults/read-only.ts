import { setTimeout as wait } from "node:timers/promises";
import type { RunServer } from "../server.ts";
import type { Fault, FaultScene } from "./fault.ts";

const LASTS_MS = 3_000;
const RECOVERY_MS = 10_000;
const RULE = "a server with a read-only database is not ready and recovers";

/**
 * Routes one server's database address to a hot standby and back. Its connections to the standby stay open.
 */
export const routeToStandby: Fault = {
  name: "route leads to a hot standby",
  lastsSeconds: 4,
  prepare: async (arena) => await arena.database.standbyPath(),
  strike: async (scene) => {
    const { arena, victim } = scene;
    const line = arena.databaseLines[victim];
    const path = await arena.database.standbyPath();
    line?.retarget({ path });
    line?.cut();
    await expectNotReady(scene, [arena.servers[victim]]);
    line?.retarget({ path: arena.database.socketPath });
    await expectReady(scene, [arena.servers[victim]]);
  },
};

/** Makes the database read-only, as for maintenance, and undoes it. */
export const readOnlyDatabase: Fault = {
  name: "default_transaction_read_only on",
  lastsSeconds: 4,
  strike: async (scene) => {
    const { owner } = scene.arena.database;
    await owner`ALTER SYSTEM SET default_transaction_read_only = on`;
    await owner`SELECT pg_reload_conf()`;
    await expectNotReady(scene, scene.arena.servers);
    await owner`ALTER SYSTEM RESET default_transaction_read_only`;
    await owner`SELECT pg_reload_conf()`;
    await expectReady(scene, scene.arena.servers);
  },
};

type Servers = readonly (RunServer | undefined)[];

async function expectNotReady({ onViolation }: FaultScene, servers: Servers): Promise<void> {
  await wait(LASTS_MS);
  // A server that another fault has just started checks its database once a second.
  const until = performance.now() + LASTS_MS;
  for (const server of servers) {
    while ((await readiness(server)) === 200 && performance.now() < until) await wait(50);
    if ((await readiness(server)) === 200) onViolation(RULE, "/readyz is 200 while the database is read-only");
  }
}

async function expectReady({ onViolation }: FaultScene, servers: Servers): Promise<void> {
  const until = performance.now() + RECOVERY_MS;
  for (const server of servers) {
    while ((await readiness(server)) === 503 && performance.now() < until) await wait(50);
    if ((await readiness(server)) === 503) onViolation(RULE, `/readyz is 503 after ${RECOVERY_MS} ms`);
  }
}

/** Returns undefined if another fault has killed the server. */
async function readiness(server: RunServer | undefined): Promise<number | undefined> {
  try {
    return (await fetch(`${server?.url}/readyz`)).status;
  } catch {
    return undefined;
  }
}
