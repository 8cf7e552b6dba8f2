import { execFile } from "node:child_process";
import { promisify } from "node:util";

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
    const [uid, gid] = await Promise.all(
      ["-u", "-g"].map((option) => promisify(execFile)("id", [option, name])),
    );
    return { uid: Number(uid?.stdout), gid: Number(gid?.stdout) };
  } catch {
    return undefined;
  }
}
