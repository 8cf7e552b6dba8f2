import { setTimeout as wait } from "node:timers/promises";
import { countHolds } from "../hold-watch.ts";
import type { Fault, FaultScene } from "./fault.ts";

const DOWN_MS = 1_000;
const MAX_WAIT_MS = 3_000;

/** Sends SIGKILL at any point, and starts a new process on the same port a second later. */
export const killServer: Fault = {
  name: "server killed at any point",
  losesServers: true,
  strike: async (scene) => {
    await kill(scene);
    await wait(DOWN_MS);
    await restart(scene);
  },
};

/**
 * The upstream has replied but no settlement reaches the database: an undelivered reply must not be charged.
 */
export const killBeforeSettle: Fault = {
  name: "server killed between response and settlement",
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

/** Statements are committed, but no reply reaches the server before it is killed. */
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

/** SIGSTOP for less than the 20 s after which other servers release its holds. */
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

/** SIGTERM while calls run: they finish, everything is settled, and the exit code is 0. */
export const terminateServer: Fault = {
  name: "SIGTERM during load",
  strike: async (scene) => {
    const { arena, victim, onViolation } = scene;
    const server = arena.servers[victim];
    if (!server) return;
    const { id } = server;
    const code = await server.terminate();
    // With several faults, another one may have killed it first.
    if (code !== 0 && code !== "SIGKILL") onViolation("drain", `the server exited with ${code} after SIGTERM`);
    if (code === 0 && ((await countHolds(arena, id)) ?? 0) > 0) onViolation("drain", "unreleased holds after SIGTERM");
    await arena.startServer(server);
  },
};

/**
 * The clock of one server jumps 90 s ahead, that of another 90 s back. Money and limits use the database's
 * clock.
 */
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
