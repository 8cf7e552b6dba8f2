import { rmdir } from "node:fs/promises";
import { prepareBinaries } from "./binaries.ts";
import { checkOwner, clusterExists, ensureCluster } from "./cluster.ts";
import { EmbeddedPostgresError, errnoOf } from "./error.ts";
import type { Passwords } from "./password.ts";
import { choosePlacement, type Placement } from "./placement.ts";
import { startPostmaster, trimLogs } from "./postmaster.ts";
import { stopPostmaster } from "./shutdown.ts";

export { EmbeddedPostgresError } from "./error.ts";

export type EmbeddedPostgres = {
  /** Folder of the unix socket; the port number in the socket's name is 5432. */
  readonly socketDir: string;
  readonly clusterDir: string;
  readonly logDir: string;
  /** True if the postmaster of a killed server was still running and was reused. */
  readonly adopted: boolean;
  /**
   * The login password of a role. The superuser's is stored in the data folder; other roles need ALTER ROLE
   * first.
   */
  passwordOf(role: string): string;
  /** The verifier of the password, which PostgreSQL stores; used in ALTER ROLE. */
  verifierOf(role: string): string;
  /** Restarts the postmaster if it has died. Concurrent calls share one start. */
  ensureRunning(): Promise<void>;
  /** Stops it and starts it with the current settings: an adopted postmaster still has its old ones. */
  restart(): Promise<void>;
  /** Keeps the logs below their maximum size. */
  trimLogs(): Promise<void>;
  /** Fast shutdown; also ends remaining child processes and removes a temporary socket folder. */
  stop(): Promise<void>;
};

type EmbeddedOptions = {
  readonly dataDir: string;
  readonly maxConnections?: number;
  /** Rejects if there is no database, which is otherwise created. */
  readonly mustExist?: boolean;
  /** Prints one line for the operator. */
  readonly print: (line: string) => void;
  /** Called each time a postmaster was launched, before the wait for it. */
  readonly onWait?: () => void;
};

export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { dataDir, maxConnections, mustExist = false, print, onWait } = options;
  return actionable(async () => {
    const place = await choosePlacement(dataDir, print);
    await checkOwner(place);
    if (mustExist && !(await clusterExists(place)))
      throw new EmbeddedPostgresError(`there is no database in ${place.home}: set VX_DATA_DIR to the data folder of the server`);
    const binaries = await prepareBinaries(place, print);
    const passwords = await ensureCluster(place, binaries, print);
    const launch = () => startPostmaster(place, binaries, { maxConnections, print, onWait });
    const { adopted } = await launch();
    return supervise(place, passwords, adopted, launch);
  });
}

function supervise(place: Placement, passwords: Passwords, adopted: boolean, launch: () => Promise<unknown>): EmbeddedPostgres {
  let starting: Promise<void> | undefined;
  let stopping: Promise<void> | undefined;

  async function start(): Promise<void> {
    try {
      await actionable(launch);
    } finally {
      starting = undefined;
    }
  }

  async function stop(): Promise<void> {
    await starting?.catch(() => undefined);
    await actionable(() => stopPostmaster(place));
    // The folder is not empty if another server has just started to use it.
    if (place.hasTemporarySocketDir) await rmdir(place.socketDir).catch(() => undefined);
  }

  async function ensureRunning(): Promise<void> {
    if (stopping !== undefined) throw new EmbeddedPostgresError("the embedded database was stopped");
    starting ??= start();
    await starting;
  }

  return {
    socketDir: place.socketDir,
    clusterDir: place.clusterDir,
    logDir: place.logDir,
    adopted,
    passwordOf: (role) => passwords.of(role),
    verifierOf: (role) => passwords.verifierOf(role),
    ensureRunning,
    async restart() {
      await actionable(() => stopPostmaster(place));
      await ensureRunning();
    },
    trimLogs: () => trimLogs(place.logDir),
    async stop() {
      stopping ??= stop();
      await stopping;
    },
  };
}

/**
 * An error with an errno, such as a full disk or missing permissions, needs action by the operator; any other
 * is a bug here.
 */
async function actionable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof EmbeddedPostgresError || errnoOf(error) === undefined) throw error;
    const text = error instanceof Error ? error.message : String(error);
    throw new EmbeddedPostgresError(`the embedded database cannot be used: ${text}`, { cause: error });
  }
}
