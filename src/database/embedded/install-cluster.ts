import { chown, mkdir, open, rename } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Binaries, prepareBinaries } from "./binaries.ts";
import { checkOwner, clusterExists, runSetPassword } from "./cluster.ts";
import { EmbeddedPostgresError } from "./error.ts";
import { Passwords } from "./password.ts";
import { findPostmaster } from "./pid-file.ts";
import { choosePlacement, type Placement } from "./placement.ts";
import { lastLines } from "./run-program.ts";
import { replaceServerFile, type ServerUser } from "./server-user.ts";
import { configuration } from "./settings.ts";
import { dropTemporary, makeTemporarySibling, moveUnlessTaken, removeAbandonedSiblings } from "./temporary-folder.ts";

/** Writes the files of a cluster into an empty folder, without its configuration. */
type ClusterFiller = (folder: ClusterFolder, major: string) => Promise<void>;

type InstallOptions = {
  readonly dataDir: string;
  /** Moves an existing database aside, under a name that ends with this text. */
  readonly replaceAs: string | undefined;
  readonly print: (line: string) => void;
};

type Installed = { readonly clusterDir: string; readonly movedTo: string | undefined };

/**
 * Puts a cluster made of copied files into a data folder. PostgreSQL recovers it before it gets its place, so a cluster
 * that cannot be recovered changes nothing.
 */
export async function installCluster(options: InstallOptions, fill: ClusterFiller): Promise<Installed> {
  const { dataDir, replaceAs, print } = options;
  const place = await choosePlacement(dataDir, print);
  await checkOwner(place);
  const replaces = await requireFree(place, replaceAs !== undefined);
  const binaries = await prepareBinaries(place, print);
  const passwords = (await Passwords.read(place.dataDir)) ?? (await Passwords.generate().store(place.dataDir));
  await removeAbandonedSiblings(place.clusterDir);
  const folder = await makeTemporarySibling(place.clusterDir, 0o700);
  try {
    await fill(new ClusterFolder(folder, place.user), binaries.major);
    for (const [name, text] of Object.entries(configuration(place)))
      await replaceServerFile(join(folder, name), text, place.user);
    if (place.user.switched) await chown(folder, place.user.uid, place.user.gid);
    await recover(place, binaries, folder, passwords);
    if (replaces) await requireFree(place, true);
    const movedTo = await replaceCluster(place, folder, replaces ? replaceAs : undefined);
    return { clusterDir: place.clusterDir, movedTo };
  } catch (error) {
    await dropTemporary(folder);
    throw error;
  }
}

/** Moves a complete cluster into place, and an existing one aside. Returns the new path of the existing one. */
async function replaceCluster(place: Placement, folder: string, replaceAs: string | undefined): Promise<string | undefined> {
  const movedTo = replaceAs && `${place.clusterDir}.replaced-${replaceAs}`;
  if (movedTo !== undefined) await rename(place.clusterDir, movedTo);
  if (!(await moveUnlessTaken(folder, place.clusterDir))) throw inUse(place);
  return movedTo;
}

/** Whether there is a database that may be replaced. */
async function requireFree(place: Placement, mayReplace: boolean): Promise<boolean> {
  const running = await findPostmaster(place);
  if (running !== undefined) {
    throw new EmbeddedPostgresError(
      `the database in ${place.clusterDir} is running: stop its server first; if the server was killed, stop the database with "kill -INT ${running.pid}"`,
    );
  }
  const exists = await clusterExists(place);
  if (exists && !mayReplace) throw inUse(place);
  return exists;
}

function inUse({ clusterDir }: Placement): EmbeddedPostgresError {
  return new EmbeddedPostgresError(
    `there is a database in ${clusterDir}: choose another VX_DATA_DIR, or add --replace to move it aside`,
  );
}

/** A server in single-user mode replays the write-ahead log, then sets the password of this data folder. */
async function recover(place: Placement, binaries: Binaries, folder: string, passwords: Passwords): Promise<void> {
  const { ok, output } = await runSetPassword(place, binaries, folder, passwords);
  if (ok) return;
  const reason = /(?:FATAL|PANIC):\s+(.*)/.exec(output)?.[1] ?? lastLines(output);
  throw new EmbeddedPostgresError(`the copied database cannot be recovered: ${reason}`);
}

/** A folder of PostgreSQL that is being filled. It belongs to this user until it is complete. */
class ClusterFolder {
  readonly #path: string;
  readonly #user: ServerUser;
  readonly #made = new Set<string>(["."]);

  constructor(path: string, user: ServerUser) {
    this.#path = path;
    this.#user = user;
  }

  async makeFolder(path: string): Promise<void> {
    if (this.#made.has(path)) return;
    await this.makeFolder(dirname(path));
    const folder = join(this.#path, path);
    await mkdir(folder, { mode: 0o700 });
    if (this.#user.switched) await chown(folder, this.#user.uid, this.#user.gid);
    this.#made.add(path);
  }

  async writeFile(path: string, content: AsyncIterable<Buffer>): Promise<void> {
    await this.makeFolder(dirname(path));
    const file = await open(join(this.#path, path), "wx", 0o600);
    try {
      for await (const chunk of content) await file.writeFile(chunk);
      if (this.#user.switched) await file.chown(this.#user.uid, this.#user.gid);
      await file.sync();
    } finally {
      await file.close();
    }
  }
}
