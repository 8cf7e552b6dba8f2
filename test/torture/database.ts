import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import postgres from "postgres";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres.ts";
import { migrate } from "../../src/database/schema/migrate.ts";
import { loginTo, urlTo } from "../support/embedded.ts";
import { allowReplication, type PrimaryServer, type Standby, startStandby } from "../support/standby.ts";

/** The login of the servers, which can only use the role vx_app. Also its password. */
export const SERVER_LOGIN = "torture";

/** Tables that the checks read, of the lanes that the cell owns. */
const OWNED_TABLES = [
  "account_prices",
  "accounts",
  "holds",
  "keys",
  "ledger",
  "limit_counters",
  "movement_keys",
  "topups",
  "usage_quarters",
];

/** The databases of a run, as all faults need them. */
export interface RunStore {
  /** Folder of all files. */
  readonly folder: string;
  /** A login as the owner for each cell, whose search_path has the schema of the cell and views of what it owns. */
  readonly owners: readonly postgres.Sql[];
  /** Everything that PostgreSQL logged. */
  logText(): string;
  /** Writes everything to the files. */
  checkpoint(): Promise<void>;
  /** Starts again what was killed. */
  revive(): Promise<void>;
  stop(): Promise<void>;
}

/** The PostgreSQL of the run, with fsync on, and direct access to it. */
export class RunDatabase implements RunStore {
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
      // The driver reads types after it connects, and nothing catches its error if PostgreSQL is killed meanwhile.
      fetch_types: false,
      onnotice: () => undefined,
      types: { bigint: postgres.BigInt },
      // Lets the owner write while the database is read-only by default.
      connection: { default_transaction_read_only: false, search_path: OWNER_PATH },
    };
    this.owner = postgres(options);
  }

  static async start(folder: string): Promise<RunDatabase> {
    const embedded = await startEmbeddedPostgres({ dataDir: folder, print: () => undefined });
    await migrate({ kind: "url", url: urlTo(embedded) });
    const database = new RunDatabase(folder, embedded);
    await database.owner.unsafe(`CREATE ROLE ${SERVER_LOGIN} LOGIN PASSWORD '${SERVER_LOGIN}'; GRANT vx_app TO ${SERVER_LOGIN}`);
    await createViews(database.owner, "vx", "owned");
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

  get owners(): readonly postgres.Sql[] {
    return [this.owner];
  }

  async checkpoint(): Promise<void> {
    await this.owner`CHECKPOINT`;
  }

  logText(): string {
    const { logDir } = this.#embedded;
    return readdirSync(logDir)
      .map((name) => readFileSync(join(logDir, name), "utf8"))
      .join("\n");
  }

  kill(server = this.#primary): void {
    killPostgres(server);
  }

  pause(server = this.#primary): () => void {
    return pausePostgres(server);
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

/** The search_path of an owner of the schema vx. */
export const OWNER_PATH = "owned, vx";

/** Creates the views of what a cell owns. */
export async function createViews(owner: postgres.Sql, schema: string, views: string): Promise<void> {
  await owner.unsafe(`CREATE SCHEMA ${views};
    CREATE VIEW ${views}.all_entries AS SELECT * FROM ${schema}.ledger`);
  for (const table of OWNED_TABLES) {
    await owner.unsafe(`CREATE VIEW ${views}.${table} AS SELECT * FROM ${schema}.${table}
      WHERE lane IN (SELECT lane FROM ${schema}.lanes WHERE is_owned)`);
  }
}

type Postmaster = Pick<PrimaryServer, "clusterDir">;

/** Sends SIGKILL to the postmaster and all its children, to simulate a crash of the machine. */
export function killPostgres(server: Postmaster): void {
  const postmaster = postmasterOf(server);
  process.kill(postmaster, "SIGSTOP");
  signalAll(postmaster, "SIGKILL");
}

/** Stops all processes. The returned function resumes them. */
export function pausePostgres(server: Postmaster): () => void {
  const postmaster = postmasterOf(server);
  process.kill(postmaster, "SIGSTOP");
  signalAll(postmaster, "SIGSTOP");
  return () => signalAll(postmaster, "SIGCONT");
}

export function socketPathOf(server: PrimaryServer): string {
  return join(server.socketDir, ".s.PGSQL.5432");
}

function postmasterOf({ clusterDir }: Postmaster): number {
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
