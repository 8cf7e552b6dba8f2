import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import postgres from "postgres";
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../src/embedded-postgres/embedded-postgres.ts";
import { migrate } from "../../src/store/schema/migrate.ts";
import { loginTo, urlTo } from "../support/embedded.ts";
import { allowReplication, type PrimaryServer, type Standby, startStandby } from "../support/standby.ts";

/** The login of the servers, which can only use the role vx_app. Also its password. */
export const SERVER_LOGIN = "torture";

/** Tables that the checks read, of the lanes that the cell owns. */
const OWNED_TABLES = ["accounts", "holds", "keys", "ledger", "movement_keys", "usage_quarters"];

/** The PostgreSQL of the run, with fsync on, and direct access to it. */
export class RunDatabase {
  readonly folder: string;
  readonly #embedded: EmbeddedPostgres;
  /** The server that is used; a promoted standby after a failover. */
  #primary: PrimaryServer;
  readonly #sockets = new Set<Socket>();
  /** Connection as the owner over the socket, not through the proxies. */
  readonly owner: postgres.Sql;
  #standby: Promise<Standby> | undefined;

  private constructor(folder: string, embedded: EmbeddedPostgres) {
    this.folder = folder;
    this.#embedded = embedded;
    this.#primary = embedded;
    const options = {
      ...loginTo(embedded),
      // Not an option in the driver's types.
      socket: () => this.#dial(),
      max: 6,
      connect_timeout: 5,
      backoff: () => 0.2,
      onnotice: () => undefined,
      types: { bigint: postgres.BigInt },
      // Lets the owner write while the database is read-only by default.
      connection: { default_transaction_read_only: false },
    };
    this.owner = postgres(options);
  }

  static async start(folder: string): Promise<RunDatabase> {
    const embedded = await startEmbeddedPostgres({ dataDir: folder, print: () => undefined });
    await migrate({ kind: "url", url: urlTo(embedded) });
    const database = new RunDatabase(folder, embedded);
    await database.owner.unsafe(
      `CREATE ROLE ${SERVER_LOGIN} LOGIN PASSWORD '${SERVER_LOGIN}'; GRANT vx_app TO ${SERVER_LOGIN}`,
    );
    for (const table of OWNED_TABLES) {
      await database.owner.unsafe(`CREATE SCHEMA IF NOT EXISTS owned;
        CREATE VIEW owned.${table} AS SELECT * FROM vx.${table}
          WHERE lane IN (SELECT lane FROM vx.lanes WHERE is_owned)`);
    }
    await allowReplication(database.owner);
    await embedded.restart();
    return database;
  }

  get socketPath(): string {
    return socketPathOf(this.#primary);
  }

  /** Driver options to log in as the owner over the socket. */
  get login() {
    return loginTo(this.#primary);
  }

  get primary(): PrimaryServer {
    return this.#primary;
  }

  /** After a failover: the promoted standby is used from now on. */
  moveTo(primary: PrimaryServer): void {
    this.#primary = primary;
    for (const socket of this.#sockets) socket.destroy();
  }

  #dial(): Socket {
    const socket = connect(this.socketPath);
    this.#sockets.add(socket);
    return socket.once("close", () => this.#sockets.delete(socket));
  }

  /** The log of PostgreSQL. */
  logText(): string {
    const { logDir } = this.#embedded;
    return readdirSync(logDir)
      .map((name) => readFileSync(join(logDir, name), "utf8"))
      .join("\n");
  }

  /** Sends SIGKILL to the postmaster and all its children, to simulate a crash of the machine. */
  kill(server = this.#primary): void {
    const postmaster = postmasterOf(server);
    process.kill(postmaster, "SIGSTOP");
    signalAll(postmaster, "SIGKILL");
  }

  /** Stops all processes. The returned function resumes them. */
  pause(server = this.#primary): () => void {
    const postmaster = postmasterOf(server);
    process.kill(postmaster, "SIGSTOP");
    signalAll(postmaster, "SIGSTOP");
    return () => signalAll(postmaster, "SIGCONT");
  }

  async revive(): Promise<void> {
    if (this.#primary === this.#embedded) await this.#embedded.ensureRunning();
  }

  /** The socket of a hot standby, which is started on first use and runs until the end. */
  async standbyPath(): Promise<string> {
    this.#standby ??= startStandby(this.#embedded, this.owner);
    return (await this.#standby).socketPath;
  }

  async stop(): Promise<void> {
    await (await this.#standby?.catch(() => undefined))?.stop();
    await this.owner.end({ timeout: 5 });
    await this.#embedded.stop();
  }
}

export function socketPathOf(server: PrimaryServer): string {
  return join(server.socketDir, ".s.PGSQL.5432");
}

function postmasterOf({ clusterDir }: PrimaryServer): number {
  return Number(readFileSync(join(clusterDir, "postmaster.pid"), "utf8").split("\n")[0]);
}

function signalAll(postmaster: number, signal: NodeJS.Signals): void {
  const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, "utf8").trim().split(" ");
  for (const child of children.filter(Boolean)) {
    try {
      process.kill(Number(child), signal);
    } catch {
      // The process has already exited.
    }
  }
  process.kill(postmaster, signal);
}
