import type { CellToMigrate } from "../database/cells/migrate-cell.ts";
import type { DatabaseAddress } from "../database/driver/connect.ts";
import { DatabaseLock } from "../database/driver/database-lock.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../database/embedded/embedded-postgres.ts";
import { migrate } from "../database/schema/migrate.ts";
import type { Log } from "../telemetry/log.ts";
import { type Config, embeddedConnections } from "./settings/config.ts";
import { StartError } from "./start-error.ts";

/** A database whose schema is up to date, and how to connect to it. */
type PreparedDatabase = {
  readonly address: DatabaseAddress;
  /** The server's role. It may only execute functions. */
  readonly role: string;
  /** Whether no other server can use this database, so that leftover holds can be released. */
  readonly exclusive: boolean;
  /** Called when the database is unreachable. */
  revive(): Promise<void>;
  /** Called periodically while the database is reachable. */
  maintain(): Promise<void>;
  stop(): Promise<void>;
};

export const APP_ROLE = "vx_app";

type PrepareOptions = {
  readonly config: Config;
  /** Undefined with one cell. */
  readonly cells?: readonly CellToMigrate[] | undefined;
  readonly log: Log;
  /** Prints one line on the terminal. */
  readonly print: (line: string) => void;
  /** Called at least once while waiting for the database. */
  readonly onWait: () => void;
};

export async function prepareDatabase(options: PrepareOptions): Promise<PreparedDatabase> {
  const { config, cells, log, print, onWait } = options;
  const nothing = async () => undefined;
  const [home] = cells ?? [];
  if (home) {
    // Each cell is migrated before its first use, so that one that cannot be reached does not prevent the start.
    const { address } = home;
    return { address, role: APP_ROLE, exclusive: false, revive: nothing, maintain: nothing, stop: nothing };
  }
  if (config.databaseUrl !== undefined) {
    const address: DatabaseAddress = { kind: "url", url: config.databaseUrl };
    onWait();
    await migrate(address);
    return { address, role: APP_ROLE, exclusive: false, revive: nothing, maintain: nothing, stop: nothing };
  }
  const maxConnections = embeddedConnections(config);
  const embedded = await startEmbeddedPostgres({ dataDir: config.dataDir, maxConnections, print, onWait });
  const lock = new DatabaseLock(socketOf(embedded, "postgres"), "server");
  try {
    await acquireLock(lock, config.dataDir);
    if (embedded.adopted && (await lock.maxConnections()) < maxConnections) {
      await embedded.restart();
      await acquireLock(lock, config.dataDir);
    }
    await migrate(socketOf(embedded, "postgres"));
    await lock.logTersely(APP_ROLE);
    await lock.setPassword(APP_ROLE, embedded.verifierOf(APP_ROLE));
  } catch (error) {
    await lock.close();
    // On DataDirInUse the database belongs to another server and must keep running.
    if (!(error instanceof DataDirInUse)) await embedded.stop();
    throw error;
  }
  return supervise(embedded, lock, log);
}

/** Holds the lock of the data folder, and stops the database only while this server holds the lock. */
function supervise(embedded: EmbeddedPostgres, lock: DatabaseLock, log: Log): PreparedDatabase {
  let isOurs = true;
  const keepLock = async () => {
    const wasOurs = isOurs;
    isOurs = await lock.ensureHeld();
    if (wasOurs && !isOurs) {
      log.error("another server uses the data folder too; this server will not stop the database when it exits");
    }
    if (!wasOurs && isOurs) log.info("this server now has the lock of the data folder");
  };
  return {
    address: socketOf(embedded, APP_ROLE),
    role: APP_ROLE,
    exclusive: true,
    revive: async () => {
      await embedded.ensureRunning();
      await keepLock();
    },
    maintain: async () => {
      await keepLock();
      await embedded.trimLogs();
    },
    stop: async () => {
      await keepLock().catch((error: unknown) => log.warn({ err: error }, "renewing the lock of the data folder failed"));
      await lock.close();
      if (isOurs) await embedded.stop();
    },
  };
}

class DataDirInUse extends StartError {}

async function acquireLock(lock: DatabaseLock, dataDir: string): Promise<void> {
  const holder = await lock.acquire();
  if (holder !== undefined) {
    throw new DataDirInUse(
      `the data folder ${dataDir} is in use by ${holder}; stop that server, or set another VX_DATA_DIR, PORT and VX_ADMIN_PORT`,
    );
  }
}

/** The embedded database, opened for a command. */
type EmbeddedDatabase = {
  readonly address: DatabaseAddress;
  readonly clusterDir: string;
  /** Whether no server uses it, and none can until `close`. */
  readonly isExclusive: boolean;
  /** Stops the database, unless a server uses it. */
  close(): Promise<void>;
};

/** Uses the database of a running server, or starts it; while it is started here, no server can use it. */
export async function openEmbeddedDatabase(
  dataDir: string,
  command: string,
  print: (line: string) => void,
): Promise<EmbeddedDatabase> {
  const embedded = await startEmbeddedPostgres({ dataDir, mustExist: true, print });
  const address = socketOf(embedded, "postgres");
  const lock = new DatabaseLock(address, command);
  let isOurs = false;
  const close = async () => {
    await lock.close();
    if (isOurs) await embedded.stop();
  };
  try {
    isOurs = await lock.ensureHeld();
  } catch (error) {
    await close();
    throw error;
  }
  return { address, clusterDir: embedded.clusterDir, isExclusive: isOurs, close };
}

function socketOf(embedded: EmbeddedPostgres, user: string): DatabaseAddress {
  const password = embedded.passwordOf(user);
  return { kind: "socket", folder: embedded.socketDir, user, password, database: "postgres" };
}
