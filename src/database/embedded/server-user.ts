import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, statSync } from "node:fs";
import { chmod, chown, lstat, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";
import { EmbeddedPostgresError, errnoOf, ignoring } from "./error.ts";

/**
 * The user that PostgreSQL runs as. PostgreSQL refuses to run as root, so root starts it as an unprivileged
 * user.
 */
export type ServerUser = { readonly uid: number; readonly gid: number; readonly switched: boolean };

type Ids = { readonly uid: number; readonly gid: number };

/** "nobody": other programs may run as this user too. */
const nobody: Ids = { uid: 65534, gid: 65534 };
/** System users for this purpose, in order of preference. */
const systemUsers = ["vx", "postgres"];

export function ownUid(): number {
  return process.getuid?.() ?? -1;
}

/** The user for a new cluster when the server runs as root. */
export async function unprivilegedUser(): Promise<Ids> {
  for (const name of systemUsers) {
    const ids = await idsOf(name);
    if (ids !== undefined && ids.uid !== 0) return ids;
  }
  return nobody;
}

/** `owner` is the owner of an existing cluster: root runs a cluster as its owner. */
export function serverUser(owner: Ids | undefined, unprivileged: Ids): ServerUser {
  if (ownUid() !== 0) return { uid: ownUid(), gid: process.getgid?.() ?? -1, switched: false };
  const { uid, gid } = owner !== undefined && owner.uid !== 0 ? owner : unprivileged;
  return { uid, gid, switched: true };
}

/** Whether other programs may run as this user, and so have access to the files of the cluster. */
export function isShared(user: ServerUser): boolean {
  return user.switched && user.uid === nobody.uid;
}

/** Spawn options. Node also drops the supplementary groups when root spawns under another uid. */
export function identity(user: ServerUser): { uid?: number; gid?: number } {
  return user.switched ? { uid: user.uid, gid: user.gid } : {};
}

/** Uses the `id` program, because users may be defined outside /etc/passwd. */
async function idsOf(name: string): Promise<Ids | undefined> {
  try {
    const [uid, gid] = await Promise.all(["-u", "-g"].map((option) => promisify(execFile)("id", [option, name])));
    return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) };
  } catch {
    return undefined;
  }
}

/**
 * Creates a folder and its parents. An existing folder is not changed; folders that root creates are
 * accessible to the server user, even under umask 077.
 */
export async function makeOpenFolder(path: string): Promise<void> {
  const first = makeFolders(path);
  if (first === undefined || ownUid() !== 0) return;
  for (let folder = resolve(path); folder.length >= first.length; folder = dirname(folder)) await chmod(folder, 0o755);
}

/**
 * A 0700 folder that the server user owns. `shared` is for a parent that other users can write to: there, a
 * folder of another user is refused, not taken over.
 */
export async function makeServerFolder(path: string, user: ServerUser, shared = false): Promise<void> {
  await ignoring(["EEXIST"], mkdir(path, { mode: 0o700 }));
  const entry = await lstat(path);
  if (!entry.isDirectory()) throw new EmbeddedPostgresError(`${path} is not a folder: move it away`);
  if (entry.uid !== user.uid) {
    if (ownUid() !== 0 || (shared && entry.uid !== 0)) {
      throw new EmbeddedPostgresError(
        `${path} belongs to uid ${entry.uid}, but the database runs as uid ${user.uid}: remove that folder, or change its owner with chown`,
      );
    }
    await chown(path, user.uid, user.gid);
  }
  if ((entry.mode & 0o777) !== 0o700) await chmod(path, 0o700);
}

export async function replaceServerFile(path: string, text: string, user: ServerUser): Promise<void> {
  await writeAtomically(path, text, rename, user);
}

/**
 * Writes a file that no other user can read beside the path, and puts it there when it is complete. Root never writes through a
 * link that the user may have created.
 */
export async function writeAtomically(
  path: string,
  text: string,
  put: (temporary: string, path: string) => Promise<void>,
  user?: ServerUser,
): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}`;
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(text);
    if (user?.switched) await file.chown(user.uid, user.gid);
    await file.sync();
    await put(temporary, path);
  } finally {
    await file.close();
    await rm(temporary, { force: true });
  }
}

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

function makeFolder(folder: string): string | undefined {
  try {
    mkdirSync(folder);
    return folder;
  } catch (error) {
    if (errnoOf(error) === "EEXIST" && statSync(folder).isDirectory()) return undefined;
    throw error;
  }
}
