import { randomBytes } from "node:crypto";
import type { AddressInfo } from "node:net";
import { loadOrCreateAdminToken } from "./admin-token.ts";
import type { Config } from "./config.ts";
import { createMetering } from "./create-metering.ts";
import { createUpstreams } from "./create-upstreams.ts";
import { drawKey } from "./domain/api-key.ts";
import { typeIds } from "./domain/ids.ts";
import type { Log } from "./log.ts";
import { createMetrics } from "./metrics.ts";
import { Catalog } from "./models/catalog.ts";
import { readModels } from "./models/read-models.ts";
import { createOperatorServer } from "./operator-server.ts";
import { type PreparedDatabase, prepareDatabase } from "./prepare-database.ts";
import { createPublicServer, shutdownReason } from "./public-server.ts";
import { reloadModels } from "./reload-models.ts";
import { demoText, seedDemo } from "./seed-demo.ts";
import type { Deps } from "./services/deps.ts";
import { StartError } from "./start-error.ts";
import { Admitter } from "./store/admit.ts";
import type { DatabaseAddress } from "./store/connect.ts";
import { Database } from "./store/database.ts";
import { DatabaseMonitor } from "./store/monitor.ts";
import { forgetServers } from "./store/presence.ts";
import { TokenCounter } from "./tokens/token-counter.ts";
import type { Listener } from "./transport/listener.ts";
import { startWorkers, type Workers } from "./workers.ts";

const STATEMENT_TIMEOUT_MS = 5_000;
const MAX_WAITING_ADMISSIONS = 16_384;
const MAX_STATEMENTS = 2_048;
const MAX_WAIT_MS = 3_000;
/** How long running calls may go on after a stop was asked for. */
const DRAIN_MS = 30_000;

export type AppOptions = {
  readonly config: Config;
  readonly log: Log;
  /** One line for the person at the terminal. */
  readonly say: (line: string) => void;
};

/** A process that can be stopped: the whole app, or one worker of it. */
export type Running = {
  readonly url: string;
  readonly adminUrl: string;
  /** Reads the file of models again, here and in all workers. */
  reloadModels(): Promise<void>;
  stop(): Promise<void>;
};

/** Starts everything: database, schema, operator listener, and the public listener here or in workers. */
export async function startApp({ config, log, say }: AppOptions): Promise<Running> {
  const token = loadOrCreateAdminToken(config.dataDir, config.adminToken);
  const catalog = new Catalog(await readModels(config.modelsFile, process.env));
  const prepared = await prepareDatabase(config, log, say);
  const closers: (() => Promise<void>)[] = [() => prepared.stop()];
  const listeners: Listener[] = [];
  let workers: Workers | undefined;
  const stop = () => closeAll(closers.splice(0).reverse());
  try {
    const parts = createParts(config, log, catalog, prepared.address, prepared.role, prepared);
    closers.push(() => parts.close());
    closers.push(async () => {
      await Promise.all([parts.drain(listeners), workers?.stop()]);
    });
    if (prepared.exclusive) await forgetServers(parts.deps.database);
    let publicAddress: AddressInfo;
    if (config.workers === 1) {
      await parts.start();
      publicAddress = await open(createPublicServer({ ...parts, config, log }), config.host, listeners);
    } else {
      workers = await startWorkers(config.workers, { address: prepared.address, role: prepared.role }, log);
      publicAddress = workers.address;
    }

    const { registry } = parts.metrics;
    const readMetrics = () => workers?.readMetrics(registry) ?? registry.metrics();
    const operator = createOperatorServer({ ...parts, config, log, token, readMetrics });
    const adminAddress = await open(operator, config.adminHost, listeners);

    // Only now that nothing can fail any more: the key is shown once.
    const demoKey = config.seedDemo ? await seedDemo(parts.deps) : undefined;
    const url = urlOf(config.tls ? "https" : "http", publicAddress);
    if (demoKey !== undefined) say(demoText(demoKey, url));
    const reload = async () => {
      workers?.reloadModels();
      await parts.reloadModels();
    };
    return { url, adminUrl: urlOf("http", adminAddress), reloadModels: reload, stop };
  } catch (error) {
    await stop().catch((failure: unknown) => log.error({ err: failure }, "not everything was stopped"));
    throw error;
  }
}

/** Starts the public listener alone, on a database that is prepared: what a worker does. */
export async function startWorker(
  config: Config,
  log: Log,
  database: { address: DatabaseAddress; role: string },
) {
  const catalog = new Catalog(await readModels(config.modelsFile, process.env));
  const parts = createParts(config, log, catalog, database.address, database.role, undefined);
  const listeners: Listener[] = [];
  await parts.start();
  const address = await open(createPublicServer({ ...parts, config, log }), config.host, listeners);
  const stop = () => closeAll([() => parts.drain(listeners), () => parts.close()]);
  return { address, registry: parts.metrics.registry, reloadModels: parts.reloadModels, stop };
}

/** One after the other; one that fails keeps none of the others from being closed. */
export async function closeAll(closers: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const close of closers) await close().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw new AggregateError(failures, "not everything could be closed");
}

/** What both listeners are made of. */
function createParts(
  config: Config,
  log: Log,
  catalog: Catalog,
  address: DatabaseAddress,
  role: string,
  prepared: PreparedDatabase | undefined,
) {
  const metrics = createMetrics();
  const common = {
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    role,
    maxStatements: MAX_STATEMENTS,
    maxWaitMs: MAX_WAIT_MS,
  };
  const database = new Database(address, { ...common, connections: config.databaseConnections, name: "vx" });
  // Admission has connections of its own: nothing slow can stand before it.
  const admission = new Database(address, {
    ...common,
    connections: config.admissionPipelines,
    name: "vx admission",
  });
  const admitter = new Admitter(admission, {
    pipelines: config.admissionPipelines,
    maxWaiting: MAX_WAITING_ADMISSIONS,
    onBatch: (size) => metrics.batchSize.observe({ lane: "admission" }, size),
  });
  metrics.gauge("vx_lane_queue_depth", "Calls that wait for the next admission batch.", () => admitter.depth);
  metrics.gauge(
    "vx_database_connections",
    "Connections of the pool for single statements.",
    () => database.connections,
  );
  metrics.gauge("vx_database_statements", "Single statements that run or wait.", () => database.running);

  // So has the monitor: that many calls wait does not make the database unreachable.
  const looks = new Database(address, { ...common, connections: 1, name: "vx monitor" });
  const monitor = new DatabaseMonitor(looks, {
    onChange: (reachable, error) => {
      if (reachable) log.info("the database is back");
      else log.error({ err: error }, "the database cannot be reached");
    },
    revive: async () => await prepared?.revive(),
    tend: async () => await prepared?.tend(),
    onFailure: (error) => log.error({ err: error }, "the database could not be looked after"),
  });
  monitor.start();
  const drainStarted = new AbortController();
  const shutdown = new AbortController();
  let draining = false;
  const readiness = {
    isReady: () => monitor.reachable && !draining,
    watch: (listener: () => void) => monitor.watch(listener),
  };
  const billingDatabase = new Database(address, {
    ...common,
    connections: config.billingPipelines,
    name: "vx billing",
  });
  const tokens = new TokenCounter();
  const upstreams = createUpstreams({ env: process.env, tokens, log, metrics });
  const metering = createMetering({
    database,
    billingDatabase,
    pipelines: config.billingPipelines,
    models: catalog,
    run: (...of) => upstreams.run(...of),
    tokens,
    ids: typeIds,
    log,
    metrics,
  });
  const deps: Deps = { database, catalog, ids: typeIds, drawKey: (lane) => drawKey(lane, randomBytes) };

  return {
    deps,
    admitter,
    meter: metering.meter,
    start: async () => {
      await upstreams.use(catalog.list());
      await metering.start();
    },
    reloadModels: () => reloadModels({ path: config.modelsFile, catalog, upstreams, log }),
    metrics,
    readiness,
    drainSignal: drainStarted.signal,
    shutdownSignal: shutdown.signal,
    drain: async (listeners: readonly Listener[]) => {
      draining = true;
      monitor.announce();
      drainStarted.abort(shutdownReason());
      const cutCalls = () => shutdown.abort(shutdownReason());
      await Promise.all(listeners.map((listener) => listener.close(DRAIN_MS, cutCalls)));
      await metering.settle();
    },
    close: async () => {
      monitor.stop();
      await metering.stop();
      await Promise.all(
        [database, admission, billingDatabase, looks, tokens, upstreams].map((part) => part.close()),
      );
    },
  };
}

async function open(listener: Listener, host: string, opened: Listener[]): Promise<AddressInfo> {
  try {
    const address = await listener.open();
    opened.push(listener);
    return address;
  } catch (error) {
    const { code, message, port } = error as NodeJS.ErrnoException & { port?: number };
    throw new StartError(
      code === "EADDRINUSE" ? `port ${port} on ${host} is in use by another program` : message,
    );
  }
}

function urlOf(scheme: string, { address, port, family }: AddressInfo): string {
  return `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}
