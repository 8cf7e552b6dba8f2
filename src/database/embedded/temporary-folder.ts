import { randomBytes } from "node:crypto";
import { chmod, lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ignoring } from "./error.ts";
import { isPidTaken } from "./processes.ts";

const ABANDONED_AFTER_MS = 10 * 60_000;
const ownFolders = new Set<string>();

/** A folder to build `path` in: a process killed midway leaves this folder, never an incomplete `path`. */
export async function makeTemporarySibling(path: string, mode: number): Promise<string> {
  const folder = `${path}.new-${process.pid}-${randomBytes(4).toString("hex")}`;
  ownFolders.add(folder);
  await mkdir(folder);
  await chmod(folder, mode);
  return folder;
}

/**
 * Moves the folder into place. False if a concurrent start was first; then its result is kept and this folder
 * is removed.
 */
export async function moveIntoPlace(folder: string, path: string): Promise<boolean> {
  const moved = await moveUnlessTaken(folder, path);
  if (!moved) await dropTemporary(folder);
  return moved;
}

/** Returns false and changes nothing if `path` already exists. */
export async function moveUnlessTaken(folder: string, path: string): Promise<boolean> {
  const moved = await ignoring(
    ["ENOTEMPTY", "EEXIST", "ENOTDIR"],
    rename(folder, path).then(() => true),
  );
  if (moved !== true) return false;
  ownFolders.delete(folder);
  await syncToDisk(dirname(path));
  return true;
}

export async function dropTemporary(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  ownFolders.delete(folder);
}

/**
 * Removes the folders of killed starts. If an initdb that is ending still writes to one, a later start
 * removes it.
 */
export async function removeAbandonedSiblings(path: string, minAgeMs = 0): Promise<void> {
  const parent = dirname(path);
  const prefix = `${basename(path)}.new-`;
  for (const name of (await ignoring(["ENOENT"], readdir(parent))) ?? []) {
    if (!name.startsWith(prefix)) continue;
    const folder = join(parent, name);
    if (await isAbandoned(folder, Number.parseInt(name.slice(prefix.length), 10), minAgeMs)) {
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
    }
  }
}

async function isAbandoned(folder: string, creatorPid: number, minAgeMs: number): Promise<boolean> {
  if (ownFolders.has(folder)) return false;
  const entry = await ignoring(["ENOENT"], lstat(folder));
  // Date.now() has no fractions: with those of ctimeMs, the age of a new folder could be below 0.
  const ageMs = Date.now() - Math.floor(entry?.ctimeMs ?? 0);
  // In a container every start may have the same pid, so a folder with this pid that is not in `ownFolders`
  // is an old one.
  const hasCreatorExited = creatorPid === process.pid || !isPidTaken(creatorPid);
  return ageMs >= (hasCreatorExited ? minAgeMs : ABANDONED_AFTER_MS);
}

/** For a folder, syncs its entries. */
export async function syncToDisk(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
