import { randomBytes } from "node:crypto";
import { chmod, chown, lstat, mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { EmbeddedPostgresError, unless } from "./error.ts";
import { ownUid, type ServerUser } from "./server-user.ts";

const abandonedAfterMs = 10 * 60_000;
const ours = new Set<string>();

/** A folder beside `path` to build it in: whoever is killed midway leaves this one, never half of `path`. */
export async function makeTemporarySibling(path: string, mode: number): Promise<string> {
  const folder = `${path}.new-${process.pid}-${randomBytes(4).toString("hex")}`;
  ours.add(folder);
  await mkdir(folder);
  await chmod(folder, mode);
  return folder;
}

/** Moves it into place. False if another start was first; then its result stands and ours is dropped. */
export async function moveIntoPlace(folder: string, path: string): Promise<boolean> {
  const moved = await unless(
    ["ENOTEMPTY", "EEXIST"],
    rename(folder, path).then(() => true),
  );
  if (moved !== true) await rm(folder, { recursive: true, force: true });
  ours.delete(folder);
  if (moved === true) await syncFolder(dirname(path));
  return moved === true;
}

export async function dropTemporary(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true });
  ours.delete(folder);
}

/**
 * A folder, with those above it. An existing one stays as it is, but what root makes the server user can pass
 * through, even under umask 077.
 */
export async function makeOpenFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true });
  if (first === undefined || ownUid() !== 0) return;
  for (let folder = resolve(path); folder.length >= first.length; folder = dirname(folder))
    await chmod(folder, 0o755);
}

/** Removes what killed starts have left. A file that a dying initdb is still writing waits for the next time. */
export async function removeAbandonedSiblings(path: string, minAgeMs = 0): Promise<void> {
  const parent = dirname(path);
  const prefix = `${basename(path)}.new-`;
  for (const name of (await unless(["ENOENT"], readdir(parent))) ?? []) {
    if (!name.startsWith(prefix)) continue;
    const folder = join(parent, name);
    if (await isAbandoned(folder, Number.parseInt(name.slice(prefix.length), 10), minAgeMs)) {
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
    }
  }
}

async function isAbandoned(folder: string, maker: number, minAgeMs: number): Promise<boolean> {
  if (ours.has(folder)) return false;
  const entry = await unless(["ENOENT"], lstat(folder));
  const ageMs = Date.now() - (entry?.ctimeMs ?? 0);
  // In a container every start may have the same pid; a folder of "ours" that we did not make is an old one.
  const isMakerGone = maker === process.pid || !isPidTaken(maker);
  return ageMs >= (isMakerGone ? minAgeMs : abandonedAfterMs);
}

export function isPidTaken(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

/**
 * A 0700 folder that the server user owns. `shared` is for a parent that others write to as well:
 * there a folder of somebody else is refused, not taken over.
 */
export async function makeServerFolder(path: string, user: ServerUser, shared = false): Promise<void> {
  await unless(["EEXIST"], mkdir(path, { mode: 0o700 }));
  const entry = await lstat(path);
  if (!entry.isDirectory()) throw new EmbeddedPostgresError(`${path} is not a folder: move it away`);
  if (entry.uid !== user.uid) {
    if (ownUid() !== 0 || (shared && entry.uid !== 0)) {
      throw new EmbeddedPostgresError(
        `${path} belongs to uid ${entry.uid}, but the database runs as uid ${user.uid}: remove that folder, or hand it over with chown`,
      );
    }
    await chown(path, user.uid, user.gid);
  }
  if ((entry.mode & 0o777) !== 0o700) await chmod(path, 0o700);
}

/** Replaces a file of the server user as a whole. Root never writes through a link that user may have put there. */
export async function replaceServerFile(path: string, text: string, user: ServerUser): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}`;
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(text);
    if (user.switched) await file.chown(user.uid, user.gid);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r");
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}
