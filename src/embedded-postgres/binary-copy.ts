import { chmod, constants, copyFile, lstat, mkdir, readdir, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type BinaryPackage, makeLibraryLinks } from "./binary-package.ts";
import { unless } from "./error.ts";
import { makeOpenFolder } from "./server-folder.ts";
import {
  dropTemporary,
  makeTemporarySibling,
  moveUnlessTaken,
  removeAbandonedSiblings,
} from "./temporary-folder.ts";

/** Ensures a complete copy of the package below `folder` and returns its root. */
export async function copyBinaries(
  from: BinaryPackage,
  folder: string,
  onCopied: (root: string) => void,
): Promise<string> {
  const root = join(folder, `binaries-${from.version}`);
  await removeAbandonedSiblings(root);
  const files = await listFiles(from.root);
  if (await isComplete(from.root, root, files)) {
    await makeLibraryLinks(root);
    return root;
  }
  await makeOpenFolder(folder);
  const temporary = await makeTemporarySibling(root, 0o755);
  try {
    for (const file of files) await copyReadable(join(from.root, file), join(temporary, file));
    await makeLibraryLinks(temporary);
    if (await putInPlace(temporary, root, (place) => isComplete(from.root, place, files))) onCopied(root);
  } catch (error) {
    await dropTemporary(temporary);
    throw error;
  }
  return root;
}

/** Static libraries are skipped: they are only for linking other programs. */
async function listFiles(root: string): Promise<string[]> {
  const entries = await readdir(join(root, "native"), { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile() && !entry.name.endsWith(".a"));
  return files.map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
}

async function isComplete(from: string, to: string, files: readonly string[]): Promise<boolean> {
  const same = await Promise.all(
    files.map(async (file) => {
      const copy = await unless(["ENOENT", "ENOTDIR"], lstat(join(to, file)));
      return copy?.isFile() === true && copy.size === (await lstat(join(from, file))).size;
    }),
  );
  return same.every(Boolean);
}

/**
 * Makes the copy readable for all users, which is its purpose, even if the installation used a strict umask.
 */
async function copyReadable(from: string, to: string): Promise<void> {
  const folders: string[] = [];
  for (let folder = dirname(to); await isMissing(folder); folder = dirname(folder)) folders.unshift(folder);
  for (const folder of folders) {
    await mkdir(folder);
    await chmod(folder, 0o755);
  }
  await copyFile(from, to, constants.COPYFILE_FICLONE);
  await chmod(to, 0o755);
}

async function isMissing(path: string): Promise<boolean> {
  return (await unless(["ENOENT"], lstat(path))) === undefined;
}

type Check = (place: string) => Promise<boolean>;

/** False if a concurrent start has put a complete copy there; then this one is removed. */
async function putInPlace(temporary: string, root: string, isCompleteIn: Check): Promise<boolean> {
  while (!(await moveUnlessTaken(temporary, root))) {
    if (await isCompleteIn(root)) {
      await dropTemporary(temporary);
      return false;
    }
    await moveIncompleteAside(root, isCompleteIn);
  }
  return true;
}

/** Since the check, a concurrent start may have put a complete copy there; that one is moved back. */
async function moveIncompleteAside(root: string, isCompleteIn: Check): Promise<void> {
  const aside = await makeTemporarySibling(root, 0o700);
  const moved = join(aside, "incomplete");
  await unless(["ENOENT"], rename(root, moved));
  if (await isCompleteIn(moved)) await moveUnlessTaken(moved, root);
  await dropTemporary(aside);
}
