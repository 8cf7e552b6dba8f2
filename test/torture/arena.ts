import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import type postgres from "postgres";
import { FakeStripe } from "../support/fake-stripe.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { ArenaCells } from "./cells.ts";
import { CitusStore } from "./citus/store.ts";
import { RunDatabase, type RunStore, SERVER_LOGIN } from "./database.ts";
import { TortureEndpoint } from "./endpoint.ts";
import { Line } from "./line.ts";
import { PRICE_SETS, type PriceSet } from "./prices.ts";
import { RunServer } from "./server.ts";
import { modelsYaml, OPERATOR_TOKEN } from "./settings.ts";
import { TortureUpstream } from "./upstream.ts";

const DATABASE_MS = 30_000;

export type ArenaOptions = {
  readonly servers: number;
  /** Of the way to the database and back. */
  readonly roundTripMs?: number;
  /** Folder of the database; by default inside the folder of the run. */
  readonly databaseFolder?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Servers get the addresses of two hosts. Nothing listens on the second one until a standby is attached. */
  readonly hasStandby?: boolean;
  /** Servers use the database as the cell "a", and cells can be added. */
  readonly hasCells?: boolean;
  /** Servers use two cells in a Citus cluster and no other database. */
  readonly isCitus?: boolean;
};

type ArenaParts = Pick<
  Arena,
  "store" | "upstream" | "endpoint" | "stripe" | "servers" | "databaseLines" | "standbyLines" | "upstreamLines"
> & { readonly cells: ArenaCells | undefined };

/**
 * All processes of a run: one database, some servers, one upstream, and a proxy on every connection between
 * them. With Citus, the connections of the servers to the nodes of the cluster have no proxies.
 */
export class Arena {
  readonly store: RunStore;
  readonly upstream: TortureUpstream;
  readonly endpoint: TortureEndpoint;
  readonly stripe: FakeStripe;
  readonly servers: readonly RunServer[];
  readonly databaseLines: Line[];
  readonly standbyLines: Line[];
  readonly upstreamLines: readonly Line[];
  readonly #cells: ArenaCells | undefined;
  /** When each server became ready. A server that has just started cannot tell yet which others are dead. */
  readonly starts: number[] = [];
  /** The models file of each server. */
  readonly #modelsFiles: string[] = [];
  /** The prices that the servers have had, and since when they were in the files. */
  readonly prices: { readonly at: number; readonly prices: PriceSet }[] = [];
  readonly #remove: () => void;
  #starting: Promise<void> = Promise.resolve();

  private constructor(parts: ArenaParts, remove: () => void) {
    this.store = parts.store;
    this.upstream = parts.upstream;
    this.endpoint = parts.endpoint;
    this.stripe = parts.stripe;
    this.servers = parts.servers;
    this.databaseLines = parts.databaseLines;
    this.standbyLines = parts.standbyLines;
    this.upstreamLines = parts.upstreamLines;
    this.#cells = parts.cells;
    this.#remove = remove;
  }

  static async start(options: ArenaOptions): Promise<Arena> {
    const folder = createTemporaryFolder("torture");
    const database = options.isCitus ? undefined : await RunDatabase.start(options.databaseFolder ?? folder.path);
    const store = database ?? (await CitusStore.start());
    const upstream = await TortureUpstream.start();
    const endpoint = await TortureEndpoint.start();
    const stripe = await FakeStripe.start();
    const servers: RunServer[] = [];
    const databaseLines: Line[] = [];
    const standbyLines: Line[] = [];
    const upstreamLines: Line[] = [];
    const cells = database && new ArenaCells(folder.path, database, databaseLines);
    const arena = new Arena(
      { store, upstream, endpoint, stripe, servers, databaseLines, standbyLines, upstreamLines, cells },
      () => folder.remove(),
    );
    try {
      for (let i = 0; i < options.servers; i++) {
        const toUpstream = await Line.start({ port: upstream.port, host: "127.0.0.1" });
        upstreamLines.push(toUpstream);
        const models = join(folder.path, `models-${i}.yaml`);
        arena.#modelsFiles.push(models);
        const logFile = join(folder.path, `server-${i}.log`);
        const probeFile = join(folder.path, `server-${i}.probe`);
        await writeFile(logFile, "");
        await writeFile(probeFile, "");
        const env = {
          ...(store instanceof CitusStore
            ? { VX_CELLS: store.serverFile }
            : await arena.#openLines(options, join(folder.path, "no-standby"))),
          ...stripe.env,
          VX_TOP_UP_MIN: "0.01",
          VX_MODELS: models,
          VX_DATA_DIR: join(folder.path, `server-${i}`),
          VX_ADMIN_TOKEN: OPERATOR_TOKEN,
          VX_WEBHOOK_ALLOWED_CIDRS: "127.0.0.1",
          VX_WEBHOOK_CUSTOMER_CIDRS: "127.0.0.1",
          VX_AUTH_FAILURES_PER_MINUTE: "1000000000",
          ...options.env,
        };
        servers.push(new RunServer({ env, logFile, probeFile }));
      }
      await arena.#writeModels(PRICE_SETS[0] as PriceSet);
      for (const server of servers) await arena.startServer(server);
      return arena;
    } catch (error) {
      await arena.stop();
      throw error;
    }
  }

  /** Changes the prices of the model that customers pay for. */
  async setPrices(prices: PriceSet): Promise<void> {
    await this.#writeModels(prices);
    for (const server of this.servers) if (server.isReady) server.signal("SIGHUP");
  }

  async #writeModels(prices: PriceSet): Promise<void> {
    this.prices.push({ at: performance.now(), prices });
    for (const [i, path] of this.#modelsFiles.entries())
      await writeFile(path, modelsYaml(prices, (this.upstreamLines[i] as Line).port));
  }

  /** Opens the proxies of one server. Returns its environment. */
  async #openLines({ hasStandby, hasCells, roundTripMs = 0 }: ArenaOptions, absent: string): Promise<Record<string, string>> {
    const open = async (lines: Line[], path: string) => {
      const line = await Line.start({ path }, roundTripMs / 2);
      lines.push(line);
      return `127.0.0.1:${line.port}`;
    };
    const hosts = [await open(this.databaseLines, this.database.socketPath)];
    if (hasStandby) hosts.push(await open(this.standbyLines, absent));
    const url = `postgres://${SERVER_LOGIN}:${SERVER_LOGIN}@${hosts}/postgres?target_session_attrs=read-write`;
    return hasCells ? { VX_CELLS: this.cells.addServer(url) } : { DATABASE_URL: url };
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

  /** A login as the owner for each cell. */
  get owners(): readonly postgres.Sql[] {
    return [...this.store.owners, ...(this.#cells?.owners ?? [])];
  }

  get database(): RunDatabase {
    if (!(this.store instanceof RunDatabase)) throw new Error("the arena is on Citus");
    return this.store;
  }

  /** The further cells on PostgreSQL. */
  get cells(): ArenaCells {
    if (!this.#cells) throw new Error("the arena is on Citus");
    return this.#cells;
  }

  get citus(): CitusStore {
    if (!(this.store instanceof CitusStore)) throw new Error("the arena is not on Citus");
    return this.store;
  }

  /** Removes all network faults and waits until every server accepts calls. */
  async heal(): Promise<void> {
    const toCells = this.#cells?.all.flatMap(({ lines }) => lines) ?? [];
    for (const proxy of [...toCells, ...this.standbyLines, ...this.upstreamLines]) proxy.set({});
    await this.store.revive();
    for (const server of this.servers) if (!server.isRunning) await this.startServer(server);
  }

  /** Stops everything that was started, even if some of it fails to stop. */
  async stop(): Promise<void> {
    const lines = [...this.databaseLines, ...this.standbyLines, ...this.upstreamLines];
    const endings = [
      ...this.servers.map((server) => () => server.kill()),
      () => this.upstream.stop(),
      () => this.endpoint.stop(),
      () => this.stripe.stop(),
      ...lines.map((line) => () => line.stop()),
      async () => this.#cells?.stop(),
      () => this.store.stop(),
    ];
    const failures: unknown[] = [];
    for (const end of endings) await end().catch((error: unknown) => failures.push(error));
    this.#remove();
    // A folder given in the options is kept and emptied.
    for (const name of await readdir(this.store.folder).catch(() => [])) {
      await rm(join(this.store.folder, name), { recursive: true, force: true });
    }
    if (failures.length > 0) throw new AggregateError(failures, "not everything came to its end");
  }

  /** Waits while the database is unreachable. */
  async #serverIds(): Promise<string[]> {
    const home = this.owners[0] as postgres.Sql;
    const until = performance.now() + DATABASE_MS;
    for (;;) {
      try {
        const rows = await home<{ id: string }[]>`SELECT id FROM servers`;
        return rows.map(({ id }) => id);
      } catch (error) {
        if (performance.now() > until) throw error;
        await wait(200);
      }
    }
  }
}
