import { rm } from "node:fs/promises";
import { join } from "node:path";
import { binaryPackageName, findBinaryPackageIn, prepareBinaries } from "./binaries.ts";
import { checkOwner, clusterExists, ensureCluster, majorOf } from "./cluster.ts";
import { EmbeddedPostgresError } from "./error.ts";
import { replaceCluster } from "./install-cluster.ts";
import type { Passwords } from "./password.ts";
import { findPostmaster } from "./pid-file.ts";
import { choosePlacement, type Placement, placementIn } from "./placement.ts";
import { startPostmaster } from "./postmaster.ts";
import { makeServerFolder } from "./server-user.ts";
import { stopPostmaster } from "./shutdown.ts";

/** The last published package of each earlier major version. */
const PACKAGES: Readonly<Record<string, string>> = {
  "15": "15.18.0-beta.17",
  "16": "16.14.0-beta.17",
  "17": "17.10.0-beta.17",
};
const MAX_CONNECTIONS = 20;

export type ClusterLogin = { readonly socketDir: string; passwordOf(role: string): string };

type UpgradeOptions = {
  readonly dataDir: string;
  /** Where npm installed the package of the old major version. */
  readonly oldPackages: string | undefined;
  readonly print: (line: string) => void;
};

type Upgraded = {
  readonly from: string;
  readonly to: string;
  readonly clusterDir: string;
  readonly movedTo: string;
};

/**
 * Moves the database to the major version of the installed package. `copy` copies from one running PostgreSQL to an empty one;
 * only after it has returned the new cluster gets its place, and the old one is kept beside it.
 */
export async function upgradeCluster(
  { dataDir, oldPackages, print }: UpgradeOptions,
  copy: (from: ClusterLogin, to: ClusterLogin) => Promise<void>,
): Promise<Upgraded> {
  const place = await choosePlacement(dataDir, print);
  await checkOwner(place);
  await requireStopped(place);
  const from = await majorOf(place.clusterDir);
  const binaries = await prepareBinaries(place, print);
  const to = binaries.major;
  if (from === to)
    throw new EmbeddedPostgresError(`the database in ${place.clusterDir} is already one of PostgreSQL ${to}`);
  if (oldPackages === undefined) throw new EmbeddedPostgresError(missingPackage(from));
  const oldBinaries = await prepareBinaries(place, print, await findBinaryPackageIn(oldPackages));
  const passwords = await ensureCluster(place, oldBinaries, print);
  const next = placementIn(place, join(place.home, "upgrade"));
  const options = { maxConnections: MAX_CONNECTIONS, print, onWait: undefined };
  try {
    await startPostmaster(place, oldBinaries, options);
    await discard(next);
    await makeServerFolder(next.home, place.user);
    await ensureCluster(next, binaries, print);
    await startPostmaster(next, binaries, options);
    await copy(loginTo(place, passwords), loginTo(next, passwords));
    await stopPostmaster(next);
    await stopPostmaster(place);
    const movedTo = await replaceCluster(place, next.clusterDir, `postgresql-${from}`);
    return { from, to, clusterDir: place.clusterDir, movedTo: movedTo ?? "" };
  } finally {
    await stopPostmaster(place);
    await discard(next);
  }
}

async function requireStopped(place: Placement): Promise<void> {
  if (!(await clusterExists(place)))
    throw new EmbeddedPostgresError(
      `there is no database in ${place.home}: set VX_DATA_DIR to its data folder`,
    );
  const running = await findPostmaster(place);
  if (running === undefined) return;
  throw new EmbeddedPostgresError(
    `the database in ${place.clusterDir} is running: stop its server first; if the server was killed, stop the database with "kill -INT ${running.pid}"`,
  );
}

function missingPackage(from: string): string {
  const version = PACKAGES[from] ?? `${from}.…`;
  return (
    `the database was made by PostgreSQL ${from}, whose programs are needed to read it: ` +
    `npm install --no-save --prefix /tmp/postgresql-${from} ${binaryPackageName()}@${version}, then add --from /tmp/postgresql-${from}`
  );
}

/** Also removes what an interrupted upgrade left. */
async function discard(next: Placement): Promise<void> {
  await stopPostmaster(next);
  await rm(next.home, { recursive: true, force: true });
  if (next.hasTemporarySocketDir) await rm(next.socketDir, { recursive: true, force: true });
}

function loginTo({ socketDir }: Placement, passwords: Passwords): ClusterLogin {
  return { socketDir, passwordOf: (role) => passwords.of(role) };
}
