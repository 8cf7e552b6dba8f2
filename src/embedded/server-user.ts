/** Whom PostgreSQL runs as. It refuses to run as root, so root hands it to an unprivileged user. */
export type ServerUser = { readonly uid: number; readonly gid: number; readonly switched: boolean };

const unprivilegedId = 65534;

export function ownUid(): number {
  return process.getuid?.() ?? -1;
}

/** `owner` is who owns an existing cluster: root serves a user's cluster as that user. */
export function serverUser(owner: { uid: number; gid: number } | undefined): ServerUser {
  if (ownUid() !== 0) return { uid: ownUid(), gid: process.getgid?.() ?? -1, switched: false };
  if (owner !== undefined && owner.uid !== 0) return { uid: owner.uid, gid: owner.gid, switched: true };
  return { uid: unprivilegedId, gid: unprivilegedId, switched: true };
}

/** Spawn options. Node also drops the supplementary groups when root spawns under another uid. */
export function identity(user: ServerUser): { uid?: number; gid?: number } {
  return user.switched ? { uid: user.uid, gid: user.gid } : {};
}
