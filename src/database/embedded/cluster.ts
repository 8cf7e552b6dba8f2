import { chmod, chown, constants, lstat, open, readdir, readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { Binaries } from "./binaries.ts";
import { EmbeddedPostgresError, ignoring } from "./error.ts";
import { Passwords, passwordPath, superuser } from "./password.ts";
import { findPostmaster, removeForeignLocks } from "./pid-file.ts";
import type { Placement } from "./placement.ts";
import { lastLines, type Outcome, runProgram } from "./run-program.ts";
import { ownUid } from "./server-user.ts";
import { INCLUDE_SETTINGS } from "./settings.ts";
import { endLeftoverProcesses } from "./shutdown.ts";
import { dropTemporary, makeTemporarySibling, moveIntoPlace, removeAbandonedSiblings } from "./temporary-folder.ts";

/** Ensures a complete cluster that this user owns, fits the binaries and has the returned passwords. */
export async function ensureCluster(place: Placement, binaries: Binaries, print: (line: string) => void): Promise<Passwords> {
  await removeAbandonedSiblings(place.clusterDir);
  const exists = await clusterExists(place);
  // The password is read after this check because a concurrent start stores it before it creates the cluster.
  const stored = await Passwords.read(place.dataDir);
  if (exists) {
    await checkCluster(place, binaries);
    return stored ?? (await renewPassword(place, binaries, print));
  }
  await requireNoReplaced(place);
  print(`creating the database in ${place.clusterDir} (first start only) …`);
  const passwords = stored ?? (await Passwords.generate().store(place.dataDir));
  await createCluster(place, binaries, passwords);
  await checkCluster(place, binaries);
  return passwords;
}

/** For a cluster whose password file was lost, or that is older than passwords. */
async function renewPassword(place: Placement, binaries: Binaries, print: (line: string) => void): Promise<Passwords> {
  const running = await findPostmaster(place);
  if (running !== undefined) {
    throw new EmbeddedPostgresError(
      `the database in ${place.clusterDir} is running, but ${passwordPath(place.dataDir)} is missing: ` +
        `stop it with "kill -INT ${running.pid}" and start again, which sets a new password`,
    );
  }
  print(`setting a new password for the database, because ${passwordPath(place.dataDir)} is missing …`);
  await removeForeignLocks(place);
  await endLeftoverProcesses(place);
  const passwords = Passwords.generate();
  await setPassword(place, binaries, place.clusterDir, passwords);
  return await passwords.replace(place.dataDir);
}

async function setPassword(
  place: Placement,
  binaries: Binaries,
  folder: string,
  passwords: Passwords,
  settings: readonly string[] = [],
): Promise<void> {
  const outcome = await runSetPassword(place, binaries, folder, passwords, settings);
  if (outcome.ok) return;
  throw new EmbeddedPostgresError(`the password could not be set: ${lastLines(outcome.output)}`);
}

/**
 * Uses a single-user server, without a running postmaster: no other process of the server user can intercept
 * what root sends.
 */
export function runSetPassword(
  { user }: Placement,
  binaries: Binaries,
  folder: string,
  passwords: Passwords,
  settings: readonly string[] = [],
): Promise<Outcome> {
  const statement = `ALTER ROLE ${superuser} PASSWORD '${passwords.verifierOf(superuser)}';`;
  const args = ["--single", "-j", "-D", folder, "-c", "exit_on_error=on", ...settings, "postgres"];
  return runProgram(user, binaries.postgres, args, `${statement}\n\n`);
}

export async function clusterExists({ clusterDir }: Placement): Promise<boolean> {
  const entry = await ignoring(["ENOENT"], lstat(clusterDir));
  if (entry === undefined) return false;
  if (!entry.isDirectory()) throw new EmbeddedPostgresError(`${clusterDir} is not a folder: move it away`);
  // Not readable: checkOwner has already reported a different owner.
  const names = await ignoring(["EACCES"], readdir(clusterDir));
  return names?.length !== 0;
}

/** Runs before the other checks: it needs no PostgreSQL program, and its error says what to do. */
export async function checkOwner({ home, clusterDir, user }: Placement): Promise<void> {
  const entry = await ignoring(["ENOENT"], lstat(clusterDir));
  if (entry === undefined || entry.uid === user.uid) return;
  if (ownUid() === 0) {
    throw new EmbeddedPostgresError(
      `the database in ${clusterDir} belongs to root, but PostgreSQL cannot run as root: chown -R ${user.uid}:${user.gid} ${clusterDir}`,
    );
  }
  throw new EmbeddedPostgresError(
    `the database in ${clusterDir} belongs to uid ${entry.uid}, but this is uid ${ownUid()}: start as that user or as root, ` +
      `or stop it and change the owner with "sudo chown -R ${user.uid}:${user.gid} ${home}"`,
  );
}

async function majorOf(clusterDir: string): Promise<string> {
  const version = (await ignoring(["ENOENT"], readFile(join(clusterDir, "PG_VERSION"), "utf8")))?.trim();
  if (version !== undefined) return version;
  throw new EmbeddedPostgresError(`${clusterDir} is not a PostgreSQL data folder: move it away`);
}

/** A program that was killed while it replaced the database left no database here; the replaced one has the balances. */
async function requireNoReplaced({ clusterDir }: Placement): Promise<void> {
  const prefix = `${basename(clusterDir)}.replaced-`;
  const name = (await readdir(dirname(clusterDir))).find((entry) => entry.startsWith(prefix));
  if (name === undefined) return;
  throw new EmbeddedPostgresError(
    `there is no database in ${clusterDir}, but a replaced one in ${name} beside it: rename it back, or move it away to start with an empty one`,
  );
}

async function checkCluster({ clusterDir }: Placement, binaries: Binaries): Promise<void> {
  const version = await majorOf(clusterDir);
  if (version !== binaries.major) {
    throw new EmbeddedPostgresError(
      `the database in ${clusterDir} was made by PostgreSQL ${version}, but this is ${binaries.major}: ` +
        "use the release of vx that made it (docs/upgrading.md), or move it away to start with an empty one",
    );
  }
  // A copy or a checkout may have widened the permissions, and then PostgreSQL refuses to start.
  if (((await lstat(clusterDir)).mode & 0o777) !== 0o700) await chmod(clusterDir, 0o700);
}

async function createCluster(place: Placement, binaries: Binaries, passwords: Passwords): Promise<void> {
  const { clusterDir, user } = place;
  const folder = await makeTemporarySibling(clusterDir, 0o700);
  try {
    if (user.switched) await chown(folder, user.uid, user.gid);
    await initdb(place, binaries, [
      ...["-D", folder, `--username=${superuser}`, "--encoding=UTF8", "--no-locale", "--no-instructions"],
      ...["--auth-local=reject", "--auth-host=reject", "--no-sync"],
    ]);
    await setPassword(place, binaries, folder, passwords, ["-c", "fsync=off"]);
    await includeSettings(join(folder, "postgresql.conf"));
    // One fsync per file takes 0.1 s. syncfs takes 0.02 s on an idle disk, but right after `npm ci` it also
    // flushes everything that npm wrote: 0.5 s for 1 GB.
    await initdb(place, binaries, ["-D", folder, "--sync-only"]);
    await moveIntoPlace(folder, clusterDir);
  } catch (error) {
    await dropTemporary(folder);
    throw error;
  }
}

async function initdb({ user }: Placement, binaries: Binaries, args: readonly string[]): Promise<void> {
  const outcome = await runProgram(user, binaries.initdb, args);
  if (outcome.ok) return;
  if (outcome.output.includes("could not look up effective user ID")) {
    throw new EmbeddedPostgresError(
      `uid ${user.uid} has no name on this machine, which PostgreSQL needs: add it to /etc/passwd, or set DATABASE_URL`,
    );
  }
  throw new EmbeddedPostgresError(`the database could not be created: ${lastLines(outcome.output)}`);
}

async function includeSettings(path: string): Promise<void> {
  const file = await open(path, constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW);
  try {
    await file.writeFile(`\n${INCLUDE_SETTINGS}`);
  } finally {
    await file.close();
  }
}
