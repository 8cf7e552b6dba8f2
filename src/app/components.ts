import { randomBytes } from "node:crypto";
import type { Deps } from "../api/deps.ts";
import { generateKey } from "../domain/api-key.ts";
import type { Ids } from "../domain/ids.ts";
import { generateOperatorToken } from "../domain/operator-token.ts";
import type { Catalog } from "../models/catalog.ts";
import type { Listener } from "../server/listener.ts";
import { Admitter } from "../store/admit.ts";
import { CellTurns } from "../store/driver/cell-turns.ts";
import { registerPrices } from "../store/prices.ts";
import type { CellToMigrate } from "../store/schema/migrate-cell.ts";
import { RELEASE } from "../store/schema/release.ts";
import type { Log } from "../telemetry/log.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { TokenCounter } from "../tokens/token-counter.ts";
import type { Config } from "./config.ts";
import { createMetering } from "./create-billing.ts";
import { createUpstreams } from "./create-upstreams.ts";
import { DatabaseHealth, type Maintenance } from "./database-health.ts";
import { closeDatabases, type DatabaseLogin, type Databases, idsOf, openDatabases } from "./databases.ts";
import { Drain } from "./drain.ts";
import { reloadCells } from "./reload-cells.ts";
import { reloadModels } from "./reload-models.ts";

const MAX_WAITING_ADMISSIONS = 16_384;

type ComponentsOptions = {
  readonly config: Config;
  readonly log: Log;
  readonly catalog: Catalog;
  readonly login: DatabaseLogin;
  readonly telemetry: Telemetry | undefined;
  /** Undefined with one cell. */
  readonly cells?: readonly CellToMigrate[] | undefined;
  /** Undefined in processes that do not run the database. */
  readonly maintenance: Maintenance | undefined;
};

/** The components that the listeners of a process share. */
export function createComponents(options: ComponentsOptions) {
  const { config, log, catalog, login, cells, maintenance, telemetry } = options;
  const metrics = createMetrics(RELEASE);
  const databases = openDatabases(config, login, cells);
  const { single: database } = databases;
  const ids = idsOf(databases);
  const turns = new CellTurns();
  const admitter = new Admitter(databases.admission, {
    pipelines: config.admissionPipelines,
    maxWaiting: MAX_WAITING_ADMISSIONS,
    turns,
    onBatch: (size) => metrics.batchSize.observe(["admission"], size),
  });
  registerGauges(metrics, admitter, database);
  const health = new DatabaseHealth({ databases, maintenance, log, metrics });
  health.startMonitors();
  const drain = new Drain(health);
  const tokens = new TokenCounter();
  const upstreams = createUpstreams({
    env: process.env,
    tokens,
    log,
    metrics,
    recordAttempt: telemetry?.recordAttempt,
  });
  const metering = createMetering({
    databases,
    pipelines: config.billingPipelines,
    turns,
    models: catalog,
    streamEvents: (call) => upstreams.streamEvents(call),
    tokens,
    ids,
    log,
    metrics,
  });
  drain.endSignal.addEventListener("abort", () => metering.stopGenerations(), { once: true });
  const deps = createDeps(options, database, metrics, ids);
  return {
    deps,
    admitter,
    meter: metering.meter,
    metrics,
    startTrace: telemetry?.startTrace,
    readiness: drain.readiness,
    drainSignal: drain.startSignal,
    shutdownSignal: drain.endSignal,
    /** Resolves when each cell was tried. Call before all else. */
    openCells: () => health.openCells(),
    registerPrices: async () => catalog.replace(await registerPrices(database, catalog.list())),
    /** Call before the first call is served, after the prices are registered. */
    start: async () => {
      await upstreams.use(catalog.list());
      await metering.start();
    },
    /** Reloads the models and the cells. */
    reload: async () => {
      if (databases.waiting) await reloadCells(config.cellsFile, databases.waiting, log);
      await reloadModels({ path: config.modelsFile, catalog, upstreams, database, log });
    },
    /** Refuses new calls and resolves when everything that ran is settled. */
    drain: (listeners: readonly Listener[], delayMs: number, isGraceful: boolean) =>
      drain.endCalls(listeners, () => metering.settle(), delayMs, isGraceful),
    close: async () => {
      health.stop();
      await metering.stop();
      await Promise.all([tokens.close(), upstreams.close(), closeDatabases(databases)]);
      await telemetry?.shutdown();
    },
  };
}

/** The dependencies of the services of both listeners. */
function createDeps(
  { config, log, catalog }: ComponentsOptions,
  database: Databases["single"],
  metrics: Metrics,
  ids: Ids,
): Deps {
  return {
    database,
    catalog,
    ids,
    generateKey: (lane) => generateKey(lane, randomBytes),
    generateOperatorToken: () => generateOperatorToken(randomBytes),
    onUnlogged: ({ actorId, method, target, requestId }, outcome, error) =>
      log.error(
        { err: error, request_id: requestId, operator_id: actorId, method, target, outcome },
        "logging a refused change failed",
      ),
    onAudit: (findings) => {
      metrics.audits.inc([findings === 0 ? "consistent" : "inconsistent"]);
      metrics.auditFindings.set(findings);
    },
    productName: config.product.name,
    topUpUrl: config.topUpUrl,
    decodeTokens: async (list) => (await import("../tokens/token-bytes.ts")).bytesOfTokens(list),
  };
}

function registerGauges(metrics: Metrics, admitter: Admitter, database: Databases["single"]): void {
  metrics.gauge(
    "vx_admission_queue_depth",
    "Calls that wait for the next admission batch.",
    () => admitter.depth,
  );
  metrics.gauge(
    "vx_database_connections",
    "Open connections for single statements.",
    () => database.connections,
  );
  metrics.gauge("vx_database_statements", "Single statements that run or wait.", () => database.running);
}
