import { randomBytes } from "node:crypto";
import { type FileHandle, link, open, readdir, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { isPidTaken } from "../embedded/processes.ts";
import { syncToDisk } from "../embedded/temporary-folder.ts";
import { BackupError } from "./backup-format.ts";
import { ignoreMissing } from "./cluster-files.ts";

/** File systems without hard links. */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

/**
 * Writes a file that appears under its name only when it is complete and on disk, and never replaces another one. Only
 * the owner can read it.
 */
export async function writeNewFile(path: string, write: (file: FileHandle) => Promise<void>): Promise<void> {
  await requireAbsent(path);
  await removeUnfinished(path);
  const temporary = `${resolve(path)}.new-${process.pid}-${randomBytes(4).toString("hex")}`;
  const file = await open(temporary, "wx", 0o600);
  try {
    try {
      await write(file);
      await file.sync();
    } finally {
      await file.close();
    }
    await moveIntoPlace(temporary, path);
    await syncToDisk(dirname(resolve(path)));
  } finally {
    await rm(temporary, { force: true });
  }
}

/** Whether the file exists. If it does, it survives a crash of the machine, even if its writer was killed. */
export async function keepIfExists(path: string): Promise<boolean> {
  if ((await stat(path).catch(ignoreMissing)) === undefined) return false;
  await removeUnfinished(path);
  await syncToDisk(path);
  await syncToDisk(dirname(resolve(path)));
  return true;
}

async function requireAbsent(path: string): Promise<void> {
  if ((await stat(path).catch(ignoreMissing)) !== undefined) throw exists(path);
}

async function moveIntoPlace(temporary: string, path: string): Promise<void> {
  try {
    await link(temporary, path);
  } catch (error) {
    const { code = "" } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") throw exists(path);
    if (!NO_LINKS.includes(code)) throw error;
    await requireAbsent(path);
    await rename(temporary, path);
  }
}

/** Files of processes that were killed while they wrote. */
async function removeUnfinished(path: string): Promise<void> {
  const folder = dirname(resolve(path));
  const prefix = `${basename(path)}.new-`;
  for (const name of await readdir(folder)) {
    if (!name.startsWith(prefix)) continue;
    const pid = Number.parseInt(name.slice(prefix.length), 10);
    // In a container every command may have the same pid.
    if (pid === process.pid || (pid > 0 && !isPidTaken(pid))) await rm(join(folder, name), { force: true });
  }
}

function exists(path: string): BackupError {
  return new BackupError(`${path} already exists; choose another file name`);
}
