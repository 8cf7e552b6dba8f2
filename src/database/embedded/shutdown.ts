import { setTimeout as sleep } from "node:timers/promises";
import { EmbeddedPostgresError, errnoOf } from "./error.ts";
import { findPostmaster } from "./pid-file.ts";
import type { Placement } from "./placement.ts";
import { isPostmasterOf, listProcesses, type Process, readProcess } from "./processes.ts";

const FAST_SHUTDOWN_MS = 10_000;
const IMMEDIATE_SHUTDOWN_MS = 5_000;
const LEFTOVER_EXIT_MS = 1_000;

/** Fast shutdown of the cluster's postmaster, if any. Resolves when its child processes have ended too. */
export async function stopPostmaster(place: Placement): Promise<void> {
  const running = await findPostmaster(place);
  if (running !== undefined) {
    const hasExited = async () => !(await isPostmaster(place, running.pid));
    signal(running.pid, "SIGINT");
    if (!(await until(hasExited, FAST_SHUTDOWN_MS))) {
      signal(running.pid, "SIGQUIT");
      if (!(await until(hasExited, IMMEDIATE_SHUTDOWN_MS))) throw doesNotStop(`process ${running.pid}`);
    }
  }
  await endLeftoverProcesses(place);
}

/**
 * Child processes of a dead postmaster exit by themselves, except one in a long computation. They keep the
 * shared memory, which blocks a new postmaster; they can no longer commit anything safely.
 */
export async function endLeftoverProcesses(place: Placement): Promise<void> {
  const haveExited = async () => (await leftoverProcesses(place)).length === 0;
  if (await until(haveExited, LEFTOVER_EXIT_MS)) return;
  for (const name of ["SIGQUIT", "SIGKILL"] as const) {
    for (const leftover of await leftoverProcesses(place)) signal(leftover.pid, name);
    if (await until(haveExited, IMMEDIATE_SHUTDOWN_MS)) return;
  }
  const remaining = (await leftoverProcesses(place)).map(({ pid, command }) => `${pid} (${command})`);
  throw doesNotStop(remaining.join(", "));
}

async function leftoverProcesses(place: Placement): Promise<Process[]> {
  const found: Process[] = [];
  for (const child of await listProcesses()) {
    // PostgreSQL puts `cluster_name` into the process title of each child.
    if (!child.command.startsWith(`postgres: ${place.clusterName}: `)) continue;
    if (!(await isPostmaster(place, child.parent))) found.push(child);
  }
  return found;
}

async function isPostmaster(place: Placement, pid: number): Promise<boolean> {
  const process = await readProcess(pid);
  return process !== undefined && (await isPostmasterOf(place.clusterDir, process));
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (errnoOf(error) !== "ESRCH") throw error;
  }
}

function doesNotStop(what: string): EmbeddedPostgresError {
  return new EmbeddedPostgresError(`the embedded PostgreSQL does not stop: ${what}`);
}

const POLL_MS = 10;

/** Polls until the condition is true; false after the timeout. */
async function until(condition: () => Promise<boolean>, boundMs: number): Promise<boolean> {
  const deadline = performance.now() + boundMs;
  for (;;) {
    if (await condition()) return true;
    if (performance.now() >= deadline) return false;
    await sleep(POLL_MS);
  }
}

/** A wait with a timeout that reports once when it takes long. */
export type BoundedWait = { pause(ms?: number): Promise<void> };

export function boundedWait(boundMs: number, onLong: () => void, onBound: () => Error): BoundedWait {
  const started = performance.now();
  let isReported = false;
  return {
    async pause(ms = POLL_MS) {
      const waitedMs = performance.now() - started;
      if (waitedMs > boundMs) throw onBound();
      if (waitedMs > 2_000 && !isReported) {
        isReported = true;
        onLong();
      }
      await sleep(ms);
    },
  };
}
