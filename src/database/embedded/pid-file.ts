import { link, readFile, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { ignoring } from "./error.ts";
import type { Placement } from "./placement.ts";
import { isPidTaken, isPostmasterOf, readProcess } from "./processes.ts";

/** The postmaster.pid fields of a postmaster that is known to be alive. */
type RunningPostmaster = { readonly pid: number; readonly status: string; readonly socketDir: string };

/** The live postmaster of this cluster, if any. A pid file alone is no proof, because pids are reused. */
export async function findPostmaster(place: Placement): Promise<RunningPostmaster | undefined> {
  const lines = (await readText(join(place.clusterDir, "postmaster.pid")))?.split("\n") ?? [];
  const pid = Number.parseInt(lines[0] ?? "", 10);
  if (Number.isNaN(pid)) return undefined;
  const process = await readProcess(pid);
  if (process === undefined || !(await isPostmasterOf(place.clusterDir, process))) return undefined;
  return { pid, status: lines[7]?.trim() ?? "", socketDir: lines[4] ?? "" };
}

/**
 * PostgreSQL removes lock files of a dead pid itself. It refuses to start when the pid belongs to another
 * program (usual in a container) or a zombie, and when a power failure left the file empty.
 */
export async function removeForeignLocks(place: Placement): Promise<void> {
  const socketLock = join(place.socketDir, ".s.PGSQL.5432.lock");
  for (const path of [join(place.clusterDir, "postmaster.pid"), socketLock]) {
    const text = await readText(path);
    if (text !== undefined && (await isForeign(path, text, place.clusterDir))) await removeIfStill(path, text);
  }
}

async function isForeign(path: string, text: string, clusterDir: string): Promise<boolean> {
  // A single-user server writes a negative pid to the socket lock.
  const pid = Math.abs(Number.parseInt(text, 10));
  if (Number.isNaN(pid)) return isOlderThan(path, 1_000);
  if (!isPidTaken(pid)) return false;
  const process = await readProcess(pid);
  return process === undefined || !(await isPostmasterOf(clusterDir, process));
}

/**
 * A concurrent start may have just created its own file: so the file is moved aside, compared, and restored
 * if it differs.
 */
async function removeIfStill(path: string, text: string): Promise<void> {
  const aside = `${path}.stale-${process.pid}`;
  if (
    (await ignoring(
      ["ENOENT"],
      rename(path, aside).then(() => true),
    )) === undefined
  )
    return;
  if ((await readText(aside)) !== text) await ignoring(["EEXIST"], link(aside, path));
  await rm(aside, { force: true });
}

async function isOlderThan(path: string, ageMs: number): Promise<boolean> {
  const entry = await ignoring(["ENOENT"], stat(path));
  return entry !== undefined && Date.now() - entry.mtimeMs > ageMs;
}

function readText(path: string): Promise<string | undefined> {
  return ignoring(["ENOENT"], readFile(path, "utf8"));
}
