import { randomBytes } from "node:crypto";
import { chmod, chown, lstat, mkdir, open, rename } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { EmbeddedPostgresError, unless } from "./error.ts";
import { makeFolders } from "./make-folders.ts";
import { ownUid, type ServerUser } from "./server-user.ts";

/**
 * Creates a folder and its parents. An existing folder is not changed; folders that root creates are
 * accessible to the server user, even under umask 077.
 */
export async function makeOpenFolder(path: string): Promise<void> {
  const first = makeFolders(path);
  if (first === undefined || ownUid() !== 0) return;
  for (let folder = resolve(path); folder.length >= first.length; folder = dirname(folder))
    await chmod(folder, 0o755);
}

/**
 * A 0700 folder that the server user owns. `shared` is for a parent that other users can write to: there, a
 * folder of another user is refused, not taken over.
 */
export async function makeServerFolder(path: string, user: ServerUser, shared = false): Promise<void> {
  await unless(["EEXIST"], mkdir(path, { mode: 0o700 }));
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

/**
 * Replaces a file of the server user atomically. Root never writes through a link that this user may have
 * created.
 */
export async function replaceServerFile(path: string, text: string, user: ServerUser): Promise<void> {
  const temporary = `${path}.${randomBytes(6).toString("hex")}`;
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(text);
    if (user.switched) await file.chown(user.uid, user.gid);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}
