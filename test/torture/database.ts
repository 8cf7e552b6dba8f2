import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../../src/embedded-postgres/embedded-postgres.ts";
import { migrate } from "../../src/store/schema/migrate.ts";
import { loginTo, urlTo } from "../support/embedded.ts";
import { allowReplication, type Standby, startStandby } from "../support/standby.ts";

/** The login of the servers, which may only act as vx_app; also its password. */
export const SERVER_LOGIN = "torture";

/** A PostgreSQL of the run's own, fsync on, and the way around everything into it. */
export class RunDatabase {
  readonly folder: string;
  readonly #embedded: EmbeddedPostgres;
  /** As the owner, over the socket: the proxies do not stand in its way. */
  readonly owner: postgres.Sql;
  #standby: Promise<Standby> | undefined;

  private constructor(folder: string, embedded: EmbeddedPostgres) {
    this.folder = folder;
    this.#embedded = embedded;
    this.owner = postgres({
      ...loginTo(embedded),
      max: 6,
      connect_timeout: 5,
      backoff: () => 0.2,
      onnotice: () => undefined,
      types: { bigint: postgres.BigInt },
      // Also while the database is read-only for everything else.
      connection: { default_transaction_read_only: false },
    });
  }

  static async start(folder: string): Promise<RunDatabase> {
    const embedded = await startEmbeddedPostgres({ dataDir: folder, say: () => undefined });
    await migrate({ kind: "url", url: urlTo(embedded) });
    const database = new RunDatabase(folder, embedded);
    await database.owner.unsafe(
      `CREATE ROLE ${SERVER_LOGIN} LOGIN PASSWORD '${SERVER_LOGIN}'; GRANT vx_app TO ${SERVER_LOGIN}`,
    );
    await allowReplication(database.owner);
    await embedded.restart();
    return database;
  }

  get socketPath(): string {
    return join(this.#embedded.socketDir, ".s.PGSQL.5432");
  }

  /** Options of the driver that log in as the owner, over the socket. */
  get login() {
    return loginTo(this.#embedded);
  }

  /** What PostgreSQL itself logged. */
  logText(): string {
    const { logDir } = this.#embedded;
    return readdirSync(logDir)
      .map((name) => readFileSync(join(logDir, name), "utf8"))
      .join("\n");
  }

  /** SIGKILL for the postmaster and all its children, as when the machine goes away. */
  kill(): void {
    const postmaster = this.#postmaster();
    process.kill(postmaster, "SIGSTOP");
    this.#signalAll(postmaster, "SIGKILL");
  }

  /** Stops all processes; the returned function lets them go on. */
  pause(): () => void {
    const postmaster = this.#postmaster();
    process.kill(postmaster, "SIGSTOP");
    this.#signalAll(postmaster, "SIGSTOP");
    return () => this.#signalAll(postmaster, "SIGCONT");
  }

  #postmaster(): number {
    const file = readFileSync(join(this.#embedded.clusterDir, "postmaster.pid"), "utf8");
    return Number(file.split("\n")[0]);
  }

  #signalAll(postmaster: number, signal: NodeJS.Signals): void {
    const children = readFileSync(`/proc/${postmaster}/task/${postmaster}/children`, "utf8")
      .trim()
      .split(" ");
    for (const child of children.filter(Boolean)) {
      try {
        process.kill(Number(child), signal);
      } catch {
        // It ended by itself.
      }
    }
    process.kill(postmaster, signal);
  }

  async revive(): Promise<void> {
    await this.#embedded.ensureRunning();
  }

  /** The socket of a hot standby, which is started when it is first needed and stays until the end. */
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
