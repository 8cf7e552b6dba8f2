import { mkdirSync, statSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { errnoOf } from "./error.ts";

/**
 * Creates a folder and its parents; returns the first one that it created. Node's recursive mkdir never returns if the
 * file system refuses a folder in an existing one with ENOENT, as /proc does.
 */
export function makeFolders(path: string): string | undefined {
  const folder = resolve(path);
  try {
    return makeFolder(folder);
  } catch (error) {
    if (errnoOf(error) !== "ENOENT" || dirname(folder) === folder) throw error;
  }
  const firstParent = makeFolders(dirname(folder));
  const made = makeFolder(folder);
  return firstParent ?? made;
}

/** Undefined if the folder exists. */
function makeFolder(folder: string): string | undefined {
  try {
    mkdirSync(folder);
    return folder;
  } catch (error) {
    if (errnoOf(error) === "EEXIST" && statSync(folder).isDirectory()) return undefined;
    throw error;
  }
}
