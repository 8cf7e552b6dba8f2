import { createHash } from "node:crypto";
import { chown, lstat, realpath } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { EmbeddedPostgresError, errnoOf, unless } from "./error.ts";
import { runProgram } from "./run-program.ts";
import { makeOpenFolder } from "./server-folder.ts";
import { ownUid, type ServerUser, serverUser } from "./server-user.ts";
import { dropTemporary, makeTemporarySibling, removeAbandonedSiblings } from "./temporary-folder.ts";

/** Where everything lies and whom it runs as. */
export type Placement = {
  readonly home: string;
  /** Where root puts what the server user cannot reach in the data folder. */
  readonly systemHome: string;
  readonly clusterDir: string;
  readonly logDir: string;
  readonly socketDir: string;
  readonly hasTemporarySocketDir: boolean;
  readonly clusterName: string;
  readonly user: ServerUser;
};

export async function choosePlacement(dataDir: string, say: (line: string) => void): Promise<Placement> {
  const folder = await openDataFolder(dataDir);
  const systemHome = systemHomeOf(folder);
  const home = await chooseHome(folder, systemHome);
  if (home !== folder) {
    await makeOpenFolder(systemHome);
    say(`the database is in ${home}, because uid ${serverUser(undefined).uid} cannot use ${folder}`);
  }
  const clusterDir = join(home, "postgres");
  const hash = shortHash(home);
  return {
    home,
    systemHome,
    clusterDir,
    logDir: join(home, "log"),
    ...chooseSocketDir(home, hash),
    clusterName: `vx-${hash}`,
    user: serverUser(await unless(["ENOENT"], lstat(clusterDir))),
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

async function chooseHome(folder: string, systemHome: string): Promise<string> {
  if (ownUid() !== 0) return folder;
  const cluster = join(folder, "postgres");
  const existing = await unless(["ENOENT"], lstat(cluster));
  if (existing !== undefined) {
    // What is no folder, or belongs to root, has its own error later.
    if (!existing.isDirectory() || existing.uid === 0) return folder;
    // Never start anew elsewhere: the balances are here.
    if (await canEnter(cluster, serverUser(existing))) return folder;
    throw new EmbeddedPostgresError(
      `uid ${serverUser(existing).uid} cannot reach the database in ${cluster}: let others pass through the folders above it (chmod o+x)`,
    );
  }
  if ((await unless(["ENOENT"], lstat(join(systemHome, "postgres")))) !== undefined) return systemHome;
  if (await canHold(folder)) return folder;
  return systemHome;
}

async function canEnter(folder: string, user: ServerUser): Promise<boolean> {
  return (await runProgram(user, "/bin/sh", ["-c", 'cd "$1" && test -w .', "sh", folder])).ok;
}

/** Found out by doing it: owners, modes, access lists and network file systems all have a say. */
async function canHold(folder: string): Promise<boolean> {
  const user = serverUser(undefined);
  const path = join(folder, "probe");
  // Never one that a server in another container may be trying just now: it would go elsewhere with the data.
  await removeAbandonedSiblings(path, 60_000);
  const probe = await makeTemporarySibling(path, 0o700);
  try {
    const owned = await unless(
      ["EPERM", "EACCES", "EINVAL"],
      chown(probe, user.uid, user.gid).then(() => true),
    );
    return owned === true && (await canEnter(probe, user));
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
