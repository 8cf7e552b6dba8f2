import { link, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { unless } from "./error.ts";
import type { Placement } from "./placement.ts";
import { isPidTaken, isPostmasterOf, readProcess } from "./processes.ts";

/** What the postmaster of a cluster says about itself, once it is known to be alive. */
type RunningPostmaster = { readonly pid: number; readonly status: string; readonly socketDir: string };

/** The postmaster of this cluster, if one is alive. A pid file alone proves nothing: pids are used again. */
export async function findPostmaster(place: Placement): Promise<RunningPostmaster | undefined> {
  const lines = (await readText(join(place.clusterDir, "postmaster.pid")))?.split("\n") ?? [];
  const pid = Number.parseInt(lines[0] ?? "", 10);
  if (Number.isNaN(pid)) return undefined;
  const process = await readProcess(pid);
  if (process === undefined || !(await isPostmasterOf(place.clusterDir, process))) return undefined;
  return { pid, status: lines[7]?.trim() ?? "", socketDir: lines[4] ?? "" };
}

/**
 * PostgreSQL itself clears the files of a dead pid. It refuses to start when the pid lives on as another
 * program (usual in a container) or as a zombie, and when a power failure has left the file empty.
 */
export async function removeForeignLocks(place: Placement): Promise<void> {
  const socketLock = join(place.socketDir, ".s.PGSQL.5432.lock");
  for (const path of [join(place.clusterDir, "postmaster.pid"), socketLock]) {
    const text = await readText(path);
    if (text !== undefined && (await isForeign(path, text, place.clusterDir)))
      await removeIfStill(path, text);
  }
}

async function isForeign(path: string, text: string, clusterDir: string): Promise<boolean> {
  // The pid of a socket lock is negative when a single-user server has made it.
  const pid = Math.abs(Number.parseInt(text, 10));
  if (Number.isNaN(pid)) return isOlderThan(path, 1_000);
  if (!isPidTaken(pid)) return false;
  const process = await readProcess(pid);
  return process === undefined || !(await isPostmasterOf(clusterDir, process));
}

/** Another start may have put its own file there in between: taken aside, looked at, and put back if so. */
async function removeIfStill(path: string, text: string): Promise<void> {
  const aside = `${path}.stale-${process.pid}`;
  if (
    (await unless(
      ["ENOENT"],
      rename(path, aside).then(() => true),
    )) === undefined
  )
    return;
  if ((await readText(aside)) !== text) await unless(["EEXIST"], link(aside, path));
  await rm(aside, { force: true });
}

async function isOlderThan(path: string, ageMs: number): Promise<boolean> {
  const entry = await unless(["ENOENT"], stat(path));
  return entry !== undefined && Date.now() - entry.mtimeMs > ageMs;
}

function readText(path: string): Promise<string | undefined> {
  return unless(["ENOENT"], readFile(path, "utf8"));
}
