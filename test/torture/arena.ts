import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type postgres from "postgres";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { ArenaCells } from "./cells.ts";
import { RunDatabase, SERVER_LOGIN } from "./database.ts";
import { Line } from "./line.ts";
import { RunServer } from "./server.ts";
import { MODEL, modelsYaml, OPERATOR_TOKEN } from "./settings.ts";
import { TortureUpstream } from "./upstream.ts";

const DATABASE_MS = 30_000;

export type ArenaOptions = {
  readonly servers: number;
  /** Folder of the database; by default inside the folder of the run. */
  readonly databaseFolder?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Servers get the addresses of two hosts. Nothing listens on the second one until a standby is attached. */
  readonly hasStandby?: boolean;
  /** Servers use the database as the cell "a", and cells can be added. */
  readonly hasCells?: boolean;
};

/**
 * All processes of a run: one database, some servers, one upstream, and a proxy on every connection between
 * them.
 */
export class Arena {
  readonly database: RunDatabase;
  readonly upstream: TortureUpstream;
  readonly servers: readonly RunServer[];
  readonly databaseLines: readonly Line[];
  readonly standbyLines: readonly Line[];
  readonly upstreamLines: readonly Line[];
  /** The further cells. */
  readonly cells: ArenaCells;
  /** When each server became ready. A server that has just started cannot tell yet which others are dead. */
  readonly starts: number[] = [];
  readonly #remove: () => void;
  #starting: Promise<void> = Promise.resolve();

  private constructor(
    parts: Pick<
      Arena,
      "database" | "upstream" | "servers" | "databaseLines" | "standbyLines" | "upstreamLines" | "cells"
    >,
    remove: () => void,
  ) {
    this.database = parts.database;
    this.upstream = parts.upstream;
    this.servers = parts.servers;
    this.databaseLines = parts.databaseLines;
    this.standbyLines = parts.standbyLines;
    this.upstreamLines = parts.upstreamLines;
    this.cells = parts.cells;
    this.#remove = remove;
  }

  static async start(options: ArenaOptions): Promise<Arena> {
    const folder = createTemporaryFolder("torture");
    const database = await RunDatabase.start(options.databaseFolder ?? folder.path);
    const upstream = await TortureUpstream.start();
    const servers: RunServer[] = [];
    const databaseLines: Line[] = [];
    const standbyLines: Line[] = [];
    const upstreamLines: Line[] = [];
    const cells = new ArenaCells(folder.path, database, databaseLines);
    const arena = new Arena(
      { database, upstream, servers, databaseLines, standbyLines, upstreamLines, cells },
      () => folder.remove(),
    );
    try {
      for (let i = 0; i < options.servers; i++) {
        const toDatabase = await Line.start({ path: database.socketPath });
        const toUpstream = await Line.start({ port: upstream.port, host: "127.0.0.1" });
        databaseLines.push(toDatabase);
        const ports = [toDatabase.port];
        if (options.hasStandby) {
          const toStandby = await Line.start({ path: join(folder.path, "no-standby") });
          standbyLines.push(toStandby);
          ports.push(toStandby.port);
        }
        const hosts = ports.map((port) => `127.0.0.1:${port}`).join(",");
        upstreamLines.push(toUpstream);
        const models = join(folder.path, `models-${i}.yaml`);
        await writeFile(models, modelsYaml(MODEL, toUpstream.port));
        const logFile = join(folder.path, `server-${i}.log`);
        const probeFile = join(folder.path, `server-${i}.probe`);
        await writeFile(logFile, "");
        await writeFile(probeFile, "");
        const url = `postgres://${SERVER_LOGIN}:${SERVER_LOGIN}@${hosts}/postgres?target_session_attrs=read-write`;
        const env = {
          ...(options.hasCells ? { VX_CELLS: cells.addServer(url) } : { DATABASE_URL: url }),
          VX_MODELS: models,
          VX_DATA_DIR: join(folder.path, `server-${i}`),
          VX_ADMIN_TOKEN: OPERATOR_TOKEN,
          VX_AUTH_FAILURES_PER_MINUTE: "1000000000",
          ...options.env,
        };
        servers.push(new RunServer({ env, logFile, probeFile }));
      }
      for (const server of servers) await arena.startServer(server);
      return arena;
    } catch (error) {
      await arena.stop();
      throw error;
    }
  }

  /**
   * Starts a server and reads its id in the database. Starts run one after the other, so that each id
   * belongs to one server.
   */
  async startServer(server: RunServer): Promise<void> {
    const started = this.#starting.then(async () => {
      if (server.isRunning) return;
      const known = new Set(await this.#serverIds());
      await server.start();
      this.starts.push(performance.now());
      server.id = (await this.#serverIds()).find((id) => !known.has(id)) ?? "";
    });
    this.#starting = started.catch(() => undefined);
    await started;
  }

  /** A login as the owner for each cell. Their schema "owned" has the rows of the lanes that the cell owns. */
  get owners(): readonly postgres.Sql[] {
    return [this.database.owner, ...this.cells.owners];
  }

  /** Removes all network faults and waits until every server accepts calls. */
  async heal(): Promise<void> {
    const toCells = this.cells.all.flatMap(({ lines }) => lines);
    for (const proxy of [...toCells, ...this.standbyLines, ...this.upstreamLines]) proxy.set({});
    await this.database.revive();
    for (const server of this.servers) if (!server.isRunning) await this.startServer(server);
  }

  /** Stops everything that was started, even if some of it fails to stop. */
  async stop(): Promise<void> {
    const lines = [...this.databaseLines, ...this.standbyLines, ...this.upstreamLines];
    const endings = [
      ...this.servers.map((server) => () => server.kill()),
      () => this.upstream.stop(),
      ...lines.map((line) => () => line.stop()),
      () => this.cells.stop(),
      () => this.database.stop(),
    ];
    const failures: unknown[] = [];
    for (const end of endings) await end().catch((error: unknown) => failures.push(error));
    this.#remove();
    // A folder given in the options is kept and emptied.
    for (const name of await readdir(this.database.folder).catch(() => [])) {
      await rm(join(this.database.folder, name), { recursive: true, force: true });
    }
    if (failures.length > 0) throw new AggregateError(failures, "not everything came to its end");
  }

  /** Waits while the database is unreachable. */
  async #serverIds(): Promise<string[]> {
    const until = performance.now() + DATABASE_MS;
    for (;;) {
      try {
        const rows = await this.database.owner<{ id: string }[]>`SELECT id FROM vx.servers`;
        return rows.map(({ id }) => id);
      } catch (error) {
        if (performance.now() > until) throw error;
        await wait(200);
      }
    }
  }
}
