import { EmbeddedPostgresError, errnoOf } from "./error.ts";
import { findPostmaster } from "./pid-file.ts";
import type { Placement } from "./placement.ts";
import { isPostmasterOf, listProcesses, type Process, readProcess } from "./processes.ts";
import { until } from "./wait.ts";

const fastShutdownMs = 10_000;
const immediateShutdownMs = 5_000;
const leftoverExitMs = 1_000;

/** Fast shutdown of the cluster's postmaster, if any. Resolves when its child processes have ended too. */
export async function stopPostmaster(place: Placement): Promise<void> {
  const running = await findPostmaster(place);
  if (running !== undefined) {
    const hasExited = async () => !(await isPostmaster(place, running.pid));
    signal(running.pid, "SIGINT");
    if (!(await until(hasExited, fastShutdownMs))) {
      signal(running.pid, "SIGQUIT");
      if (!(await until(hasExited, immediateShutdownMs))) throw doesNotStop(`process ${running.pid}`);
    }
  }
  await endLeftoverProcesses(place);
}

/**
 * Child processes of a dead postmaster exit by themselves, except one in a long computation. They hold the
 * shared memory, which blocks a new postmaster; they can no longer commit anything safely.
 */
export async function endLeftoverProcesses(place: Placement): Promise<void> {
  const haveExited = async () => (await leftoverProcesses(place)).length === 0;
  if (await until(haveExited, leftoverExitMs)) return;
  for (const name of ["SIGQUIT", "SIGKILL"] as const) {
    for (const leftover of await leftoverProcesses(place)) signal(leftover.pid, name);
    if (await until(haveExited, immediateShutdownMs)) return;
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
