import { setTimeout as wait } from "node:timers/promises";
import { countHolds } from "../hold-watch.ts";
import type { Fault, FaultScene } from "./fault.ts";

const DOWN_MS = 1_000;
const MAX_WAIT_MS = 3_000;

/** SIGKILL at any point, and a new process on the same port a second later. */
export const killServer: Fault = {
  name: "server killed at any point",
  losesServers: true,
  strike: async (scene) => {
    await kill(scene);
    await wait(DOWN_MS);
    await restart(scene);
  },
};

/** The upstream has answered, and not one settlement gets through: nobody may be charged for what nobody got. */
export const killBeforeSettle: Fault = {
  name: "server killed between answer and settlement",
  losesServers: true,
  strike: async (scene) => {
    const { arena, victim } = scene;
    const proxy = arena.databaseLines[victim];
    proxy?.set({ holdsForward: true });
    await Promise.race([arena.upstream.untilWhole(5), wait(MAX_WAIT_MS)]);
    await kill(scene);
    proxy?.cut();
    proxy?.set({});
    await wait(DOWN_MS);
    await restart(scene);
  },
};

/** What was sent is committed, and no reply gets back before the server is killed. */
export const killAfterCommit: Fault = {
  name: "server killed between COMMIT and its reply",
  losesServers: true,
  strike: async (scene) => {
    const { arena, victim } = scene;
    const proxy = arena.databaseLines[victim];
    proxy?.set({ holdsBack: true });
    await Promise.race([arena.upstream.untilWhole(5), wait(MAX_WAIT_MS)]);
    await wait(200);
    await kill(scene);
    proxy?.cut();
    proxy?.set({});
    await wait(DOWN_MS);
    await restart(scene);
  },
};

/** SIGSTOP: alive, and not there. Shorter than the 20 s after which the others give back what it holds. */
export function pauseServer(seconds: number): Fault {
  return {
    name: `server stopped for ${seconds} s`,
    lastsSeconds: seconds,
    losesServers: seconds >= 20,
    strike: async ({ arena, victim }) => {
      arena.servers[victim]?.signal("SIGSTOP");
      await wait(seconds * 1_000);
      arena.servers[victim]?.signal("SIGCONT");
    },
  };
}

/** SIGTERM while calls run: they end well, all is settled, and the exit code says so. */
export const terminateServer: Fault = {
  name: "SIGTERM during load",
  strike: async (scene) => {
    const { arena, victim, onViolation } = scene;
    const server = arena.servers[victim];
    if (!server) return;
    const { id } = server;
    const code = await server.terminate();
    // Among several faults another one may have been faster.
    if (code !== 0 && code !== "SIGKILL") onViolation("drain", `the server ended with ${code} after SIGTERM`);
    if (code === 0 && ((await countHolds(arena, id)) ?? 0) > 0)
      onViolation("drain", "holds are left after SIGTERM");
    await arena.startServer(server);
  },
};

/** The clock of one server jumps 90 s ahead, that of another 90 s behind. Money and limits go by the database's. */
export const shiftClocks: Fault = {
  name: "server clocks ± 90 s",
  isHarmless: true,
  strike: async ({ arena, victim }) => {
    const other = (victim + 1) % arena.servers.length;
    arena.servers[victim]?.signal("SIGUSR2");
    arena.servers[other]?.signal("SIGUSR2");
    await wait(500);
    arena.servers[other]?.signal("SIGUSR2");
    await wait(2_000);
    arena.servers[other]?.signal("SIGUSR2");
    arena.servers[victim]?.signal("SIGUSR2");
    await wait(100);
    arena.servers[victim]?.signal("SIGUSR2");
  },
};

async function kill({ arena, victim, onServerKill }: FaultScene): Promise<void> {
  const server = arena.servers[victim];
  if (!server) return;
  const { id } = server;
  await server.kill();
  onServerKill(id);
}

async function restart({ arena, victim }: FaultScene): Promise<void> {
  const server = arena.servers[victim];
  if (server) await arena.startServer(server);
}
