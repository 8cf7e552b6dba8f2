import { createHash } from "node:crypto";
import { chown, lstat, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { EmbeddedPostgresError, errnoOf, ignoring } from "./error.ts";
import { runProgram } from "./run-program.ts";
import { isShared, makeOpenFolder, ownUid, type ServerUser, serverUser, unprivilegedUser } from "./server-user.ts";
import { dropTemporary, makeTemporarySibling, removeAbandonedSiblings } from "./temporary-folder.ts";

/** The paths of an embedded PostgreSQL and the user it runs as. */
export type Placement = {
  /** The folder of the user who runs the server. */
  readonly dataDir: string;
  readonly home: string;
  /** The folder root uses when the server user cannot reach the data folder. */
  readonly systemHome: string;
  readonly clusterDir: string;
  readonly logDir: string;
  readonly socketDir: string;
  readonly hasTemporarySocketDir: boolean;
  readonly clusterName: string;
  readonly user: ServerUser;
};

type Owner = { uid: number; gid: number } | undefined;

const SHARED_USER_WARNING =
  "warning: the database runs as uid 65534, and every program of that user can reach its files; " +
  "create a system user 'vx' before the first start, or do not start as root";

export async function choosePlacement(dataDir: string, print: (line: string) => void): Promise<Placement> {
  const folder = await openDataFolder(dataDir);
  const systemHome = systemHomeOf(folder);
  const unprivileged = await unprivilegedUser();
  const userFor = (owner: Owner) => serverUser(owner, unprivileged);
  const home = await chooseHome(folder, systemHome, userFor);
  if (home !== folder) {
    await makeOpenFolder(systemHome);
    print(`the database is in ${home}, because uid ${userFor(undefined).uid} cannot use ${folder}`);
  }
  const user = userFor(await ignoring(["ENOENT"], lstat(clusterDirIn(home))));
  if (isShared(user)) print(SHARED_USER_WARNING);
  return { dataDir: folder, systemHome, user, ...pathsIn(home) };
}

function clusterDirIn(home: string): string {
  return join(home, "postgres");
}

function pathsIn(home: string): Omit<Placement, "dataDir" | "systemHome" | "user"> {
  const hash = shortHash(home);
  return {
    home,
    clusterDir: clusterDirIn(home),
    logDir: join(home, "log"),
    ...chooseSocketDir(home, hash),
    clusterName: `vx-${hash}`,
  };
}

async function openDataFolder(dataDir: string): Promise<string> {
  try {
    await makeOpenFolder(dataDir);
    return await realpath(dataDir);
  } catch (error) {
    throw new EmbeddedPostgresError(
      `the data folder ${dataDir} cannot be used (${errnoOf(error)}): set VX_DATA_DIR to a folder that uid ${ownUid()} can write to`,
      { cause: error },
    );
  }
}

async function chooseHome(folder: string, systemHome: string, userFor: (owner: Owner) => ServerUser): Promise<string> {
  if (ownUid() !== 0) return folder;
  const cluster = join(folder, "postgres");
  const existing = await ignoring(["ENOENT"], lstat(cluster));
  if (existing !== undefined) {
    // A file, or a folder owned by root, is reported later.
    if (!existing.isDirectory() || existing.uid === 0) return folder;
    // Never create a new cluster elsewhere: the balances are in this one.
    if (await canAccess(cluster, userFor(existing))) return folder;
    throw new EmbeddedPostgresError(
      `uid ${userFor(existing).uid} cannot reach the database in ${cluster}: make the folders above it accessible (chmod o+x)`,
    );
  }
  if ((await ignoring(["ENOENT"], lstat(join(systemHome, "postgres")))) !== undefined) return systemHome;
  if (await canCreateIn(folder, userFor(undefined))) return folder;
  return systemHome;
}

async function canAccess(folder: string, user: ServerUser): Promise<boolean> {
  return (await runProgram(user, "/bin/sh", ["-c", 'cd "$1" && test -w .', "sh", folder])).ok;
}

/** Tested by trying, because owners, modes, access lists and network file systems all affect it. */
async function canCreateIn(folder: string, user: ServerUser): Promise<boolean> {
  const path = join(folder, "probe");
  // Keeps recent probes: a server in another container may be using one, and would then place its data
  // elsewhere.
  await removeAbandonedSiblings(path, 60_000);
  const probe = await makeTemporarySibling(path, 0o700);
  try {
    const owned = await ignoring(
      ["EPERM", "EACCES", "EINVAL"],
      chown(probe, user.uid, user.gid).then(() => true),
    );
    return owned === true && (await canAccess(probe, user));
  } finally {
    await dropTemporary(probe);
  }
}

function systemHomeOf(folder: string): string {
  const named = basename(folder).startsWith(".") ? dirname(folder) : folder;
  const name = basename(named).replaceAll(/[^A-Za-z0-9._-]/g, "_");
  return join("/var/lib/vx", `${name}-${shortHash(folder)}`);
}

function chooseSocketDir(home: string, hash: string): { socketDir: string; hasTemporarySocketDir: boolean } {
  const folders = [join(home, "run"), join(tmpdir(), `vx-${hash}`)];
  const fitting = folders.find(fitsSocket) ?? join("/tmp", `vx-${hash}`);
  return { socketDir: fitting, hasTemporarySocketDir: fitting !== folders[0] };
}

function fitsSocket(folder: string): boolean {
  const maxBytes = process.platform === "darwin" ? 103 : 107;
  return Buffer.byteLength(join(folder, ".s.PGSQL.5432")) <= maxBytes;
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}
