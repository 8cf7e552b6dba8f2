import { installCluster } from "../embedded-postgres/install-cluster.ts";
import { compareReleases, RELEASE } from "../store/schema/release.ts";
import { readArchive } from "./archive-reader.ts";
import { BackupError } from "./backup-error.ts";
import type { Description } from "./backup-format.ts";
import { FOLDERS, isRestored } from "./cluster-files.ts";

export type RestoreOptions = {
  readonly file: string;
  readonly dataDir: string;
  /** Moves an existing database aside, under a name that ends with this text. */
  readonly replaceAs: string | undefined;
  readonly signal: AbortSignal;
  readonly print: (line: string) => void;
  readonly onProgress: (bytesDone: number, bytesInTotal: number) => void;
};

export type RestoredBackup = {
  readonly description: Description;
  readonly clusterDir: string;
  /** Where the replaced database is. */
  readonly movedTo: string | undefined;
};

/** Puts the database of a backup into a data folder, recovered, and stopped. */
export async function restoreBackup(options: RestoreOptions): Promise<RestoredBackup> {
  let description: Description | undefined;
  const installed = await installCluster(options, async (folder, major) => {
    for (const path of FOLDERS) await folder.makeFolder(path);
    await readArchive(options.file, options.signal, {
      description: (found) => {
        requireReadable(found, major);
        description = found;
      },
      file: async (path, content) => {
        if (isRestored(path)) await folder.writeFile(path, content);
        else for await (const _ of content);
      },
      progress: options.onProgress,
    });
    options.signal.throwIfAborted();
  });
  return { ...installed, description: description as Description };
}

function requireReadable({ release, postgresql_major }: Description, major: string): void {
  if (postgresql_major !== major) {
    throw new BackupError(
      `the backup is of PostgreSQL ${postgresql_major}, but this is ${major}: restore it with vx ${release}, then upgrade the data folder`,
    );
  }
  if (compareReleases(release, RELEASE) > 0) {
    throw new BackupError(`the backup was made by vx ${release}, which is newer than this one, ${RELEASE}`);
  }
}
