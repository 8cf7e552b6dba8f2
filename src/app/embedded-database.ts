import { type EmbeddedPostgres, startEmbeddedPostgres } from "../embedded-postgres/embedded-postgres.ts";
import type { DatabaseAddress } from "../store/driver/connect.ts";
import { DatabaseLock } from "../store/driver/database-lock.ts";

/** The embedded database, opened for a command. */
type EmbeddedDatabase = {
  /** The login of the superuser. */
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

type Login = Pick<EmbeddedPostgres, "socketDir" | "passwordOf">;

export function socketOf(embedded: Login, user: string): DatabaseAddress {
  const password = embedded.passwordOf(user);
  return { kind: "socket", folder: embedded.socketDir, user, password, database: "postgres" };
}
