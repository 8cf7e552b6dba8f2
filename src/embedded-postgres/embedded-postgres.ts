import { rmdir } from "node:fs/promises";
import { prepareBinaries } from "./binaries.ts";
import { checkOwner, ensureCluster } from "./cluster.ts";
import { EmbeddedPostgresError, errnoOf } from "./error.ts";
import type { Passwords } from "./password.ts";
import { choosePlacement, type Placement } from "./placement.ts";
import { bringUp } from "./postmaster.ts";
import { stopPostmaster } from "./shutdown.ts";
import { trimLogs } from "./start-log.ts";

export { EmbeddedPostgresError } from "./error.ts";

export type EmbeddedPostgres = {
  /** Folder of the unix socket; the port number in its name is 5432. */
  readonly socketDir: string;
  /** The PostgreSQL data folder. */
  readonly clusterDir: string;
  readonly logDir: string;
  /** True if the postmaster was already running (left by a server that was killed) and was taken over. */
  readonly adopted: boolean;
  /** What a role logs in with. The superuser's is stored in the data folder; those of other roles have to be set. */
  passwordOf(role: string): string;
  /** What PostgreSQL stores of it: for ALTER ROLE. */
  verifierOf(role: string): string;
  /** Starts the postmaster again if it has died. Concurrent calls are one. */
  ensureRunning(): Promise<void>;
  /** Stops it and starts it with the settings of this start: an adopted one still has those of its own. */
  restart(): Promise<void>;
  /** Keeps its logs within their bound. */
  trimLogs(): Promise<void>;
  /** Fast shutdown; nothing of ours is left behind. */
  stop(): Promise<void>;
};

type EmbeddedOptions = {
  readonly dataDir: string;
  readonly maxConnections?: number;
  /** One line for the person at the terminal. */
  readonly say: (line: string) => void;
  /** Called each time when the database was launched and has to be waited for. */
  readonly meanwhile?: () => void;
};

const USUAL_CONNECTIONS = 100;

export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const { dataDir, maxConnections = USUAL_CONNECTIONS, say, meanwhile } = options;
  return actionable(async () => {
    const place = await choosePlacement(dataDir, say);
    await checkOwner(place);
    const binaries = await prepareBinaries(place, say);
    const passwords = await ensureCluster(place, binaries, say);
    const launch = () => bringUp(place, binaries, { maxConnections, say, meanwhile });
    const { adopted } = await launch();
    return supervise(place, passwords, adopted, launch);
  });
}

function supervise(
  place: Placement,
  passwords: Passwords,
  adopted: boolean,
  launch: () => Promise<unknown>,
): EmbeddedPostgres {
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
    // Not empty if a server that started in this moment uses it already.
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

/** A full disk or a closed folder is for a person to act on; anything without an errno is a fault of ours. */
async function actionable<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof EmbeddedPostgresError || errnoOf(error) === undefined) throw error;
    const text = error instanceof Error ? error.message : String(error);
    throw new EmbeddedPostgresError(`the embedded database cannot be used: ${text}`, { cause: error });
  }
}
