import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Deps } from "../api/define-service.ts";
import { AuditSchedule } from "../audit/schedule.ts";
import { recordAudit } from "../audit/store.ts";
import type { CellToMigrate } from "../database/cells/migrate-cell.ts";
import type { WaitingCells } from "../database/cells/waiting-cells.ts";
import { CellTurns } from "../database/driver/batcher.ts";
import type { Cells } from "../database/driver/cells.ts";
import { timeOf } from "../database/driver/database-clock.ts";
import { RELEASE } from "../database/schema/release.ts";
import { generateKey, generateOperatorToken, generateSessionToken } from "../domain/credentials.ts";
import { DomainError } from "../domain/errors.ts";
import type { AddressRanges } from "../domain/network.ts";
import { EventWatch } from "../events/watch.ts";
import { type FailedCall, FailureRecorder } from "../failures/store.ts";
import { Admitter } from "../keys/admit.ts";
import type { Catalog } from "../models/catalog.ts";
import { ModelsError } from "../models/problems.ts";
import { readModels } from "../models/read-models.ts";
import { readHoldFigures } from "../operators/service-figures.ts";
import { Polling } from "../payments/polling.ts";
import type { PaymentProvider } from "../payments/provider.ts";
import { SimulatedPayments } from "../payments/simulated-payments.ts";
import { findTopUp } from "../payments/store.ts";
import { StripePayments } from "../payments/stripe/stripe-payments.ts";
import { ALERT_REASONS, TopUps } from "../payments/top-ups.ts";
import { registerPrices } from "../prices/store.ts";
import type { Listener } from "../server/http/listener.ts";
import type { Log } from "../telemetry/log.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import type { RecordAttempt, Telemetry } from "../telemetry/telemetry.ts";
import { TokenCounter } from "../tokens/token-counter.ts";
import { Connections } from "../upstreams/http/connection-pool.ts";
import { openUpstream } from "../upstreams/open-upstream.ts";
import { reportAttempts } from "../upstreams/runner/guarded-upstream.ts";
import { RUNNER_LIMITS, Runner } from "../upstreams/runner/runner.ts";
import { SandboxUpstream } from "../upstreams/sandbox/sandbox.ts";
import { DeliveryAddresses } from "../webhooks/addresses.ts";
import { Deliverer } from "../webhooks/deliverer.ts";
import { Sender } from "../webhooks/sender.ts";
import { createMetering, type Metering } from "./create-metering.ts";
import { DatabaseHealth, type Maintenance } from "./database-health.ts";
import { closeDatabases, type DatabaseLogin, type Databases, idsOf, openDatabases } from "./databases.ts";
import { Drain } from "./drain.ts";
import { warnOfExposedKeys } from "./exposed-file.ts";
import { readCells } from "./settings/cells.ts";
import type { Config } from "./settings/config.ts";
import type { LeakKeys } from "./settings/leak-keys.ts";
import { ConfigError } from "./start-error.ts";

const MAX_WAITING_ADMISSIONS = 16_384;

type ComponentsOptions = {
  readonly config: Config;
  readonly log: Log;
  readonly catalog: Catalog;
  readonly login: DatabaseLogin;
  readonly telemetry: Telemetry | undefined;
  /** Undefined if leak reports are not accepted. */
  readonly leakKeys?: LeakKeys | undefined;
  /** Undefined with one cell. */
  readonly cells?: readonly CellToMigrate[] | undefined;
  /** Those of this process that are open. */
  readonly listeners: readonly Listener[];
  /** Undefined in processes that do not run the database. */
  readonly maintenance: Maintenance | undefined;
};

export function createComponents(options: ComponentsOptions) {
  const { config, log, catalog, login, cells, telemetry, leakKeys } = options;
  const metrics = createMetrics(RELEASE);
  const databases = openDatabases(config, login, cells);
  const [database, ids, turns] = [databases.single, idsOf(databases), new CellTurns()];
  const admitter = createAdmitter(config, { databases, turns, metrics });
  registerGauges(metrics, admitter, database);
  const health = new DatabaseHealth({ ...options, databases, metrics });
  health.startMonitors();
  const drain = new Drain(health);
  const tokens = new TokenCounter();
  const recordAttempt = telemetry?.recordAttempt;
  const upstreams = createUpstreams({ env: process.env, tokens, log, metrics, recordAttempt });
  const metering = createMetering({
    topUpUrl: config.topUpUrl,
    databases,
    pipelines: config.billingPipelines,
    turns,
    models: catalog,
    streamEvents: upstreams.streamEvents.bind(upstreams),
    tokens,
    ids,
    log,
    metrics,
  });
  drain.endSignal.addEventListener("abort", () => metering.stopGenerations(), { once: true });
  const notices = createNotices(options, { databases, drain, metrics });
  const payments = createPayments(options, { database, ids, metrics });
  const failures = createFailureRecorder(log, { database, ids, metrics });
  const deps = createDeps(options, { database, metrics, ids, metering, payments, ...notices });
  const audits = new AuditSchedule({ ...deps, hours: config.auditHours, log });
  return {
    deps,
    payments,
    /** Starts the work that one process of a server does for the whole database. */
    startUpkeep: () => {
      metrics.gaugesRead(GAUGES, () => readHoldFigures(database));
      for (const work of [payments?.polling, audits]) work?.start();
    },
    admitter,
    meter: metering.meter,
    metrics,
    leakKeys,
    startTrace: telemetry?.startTrace,
    recordFailure: (call: FailedCall) => failures.record(call),
    readiness: drain.readiness,
    drainSignal: drain.startSignal,
    shutdownSignal: drain.endSignal,
    /** Resolves when every cell was tried. Call this first. */
    openCells: () => health.openCells(),
    registerPrices: async () => catalog.replace(await registerPrices(database, catalog.list())),
    /** Call before the first call is served, after the prices are registered. */
    start: async () => {
      await upstreams.use(catalog.list());
      await metering.start();
      notices.deliverer.start();
    },
    /** Reloads the keys of leak reports, the models and the cells. */
    reload: async () => {
      leakKeys?.reload(log);
      if (databases.waiting) await reloadCells(config.cellsFile, databases.waiting, log);
      await reloadModels({ path: config.modelsFile, catalog, upstreams, database, log });
    },
    /** Refuses new calls and resolves when everything that ran is settled. */
    drain: (listeners: readonly Listener[], delayMs: number, isGraceful: boolean) =>
      drain.endCalls(listeners, () => metering.settle(), delayMs, isGraceful),
    close: async () => {
      health.stop();
      await Promise.all([payments?.polling.stop(), audits.stop()]);
      await notices.deliverer.stop();
      await metering.stop();
      await failures.flush();
      await Promise.all([tokens.close(), upstreams.close(), closeDatabases(databases)]);
      await telemetry?.shutdown();
    },
  };
}

type AdmitterParts = {
  readonly databases: Databases;
  readonly turns: CellTurns;
  readonly metrics: Metrics;
};

function createAdmitter(config: Config, { databases, turns, metrics }: AdmitterParts): Admitter {
  return new Admitter(databases.admission, {
    pipelines: config.admissionPipelines,
    maxWaiting: MAX_WAITING_ADMISSIONS,
    clocks: databases.clocks,
    turns,
    onBatch: metrics.batchSize.observe.bind(metrics.batchSize, ["admission"]),
  });
}

type Shared = Pick<Deps, "database" | "ids" | "eventWatch" | "deliverer"> & {
  readonly metrics: Metrics;
  readonly metering: Pick<Metering, "priceLists">;
  readonly payments: Payments | undefined;
};

/** The dependencies of the services of both listeners. */
function createDeps({ config, log, catalog }: ComponentsOptions, { metrics, metering, payments, ...others }: Shared): Deps {
  return {
    ...others,
    topUps: payments?.topUps,
    simulatedTopUps: payments || !config.allowsDemoOwner ? undefined : createSimulatedTopUps(config, others),
    priceLists: metering.priceLists,
    catalog,
    eventsDays: config.eventsDays,
    generateKey: (lane) => generateKey(lane, randomBytes),
    generateOperatorToken: () => generateOperatorToken(randomBytes),
    generateLinkSecret: () => generateSessionToken(randomBytes),
    accountPageUrl: `${config.publicUrl}/account`,
    onUnlogged: ({ actor, method, target, requestId }, outcome, error) =>
      log.error(
        { err: error, request_id: requestId, operator_id: actor.id, method, target, outcome },
        "logging a refused change failed",
      ),
    onAudit: async (report) => {
      const findings = report.findings.length;
      metrics.audits.inc([findings === 0 ? "consistent" : "inconsistent"]);
      metrics.auditFindings.set(findings);
      await recordAudit(others.database, report).catch((error: unknown) =>
        log.error({ err: error }, "storing the result of an audit failed"),
      );
    },
    productName: config.product.name,
    topUpUrl: config.topUpUrl,
    decodeTokens: async (list) => (await import("../tokens/token-bytes.ts")).bytesOfTokens(list),
  };
}

/** Undefined if the server takes no payments. */
export type Payments = {
  readonly provider: PaymentProvider;
  readonly topUps: TopUps;
  readonly polling: Polling;
};

function createPayments(
  { config, log }: ComponentsOptions,
  { database, ids, metrics }: Pick<Deps, "database" | "ids"> & { readonly metrics: Metrics },
): Payments | undefined {
  if (!config.payments) return undefined;
  const { stripe, minMicros, maxMicros } = config.payments;
  // Prometheus sees the increase of a series only if it was there before.
  for (const reason of ALERT_REASONS) metrics.paymentAlerts.inc([reason], 0);
  const provider = new StripePayments(stripe, config.product.name);
  const topUps = new TopUps({
    database,
    ids,
    provider,
    minMicros,
    maxMicros,
    returnUrl: `${config.publicUrl}/account#/payments`,
    now: Date.now,
    onAlert: ({ topUpId, accountId, reason }) => {
      metrics.paymentAlerts.inc([reason]);
      log.error({ topup: topUpId, account_id: accountId, reason }, "a payment needs attention");
    },
  });
  const onFailure = (error: unknown) => log.warn({ err: error }, "looking up payments failed");
  return { provider, topUps, polling: new Polling({ topUps, database, onFailure }) };
}

/** The payments of the owner of the demo account, in which no money moves. */
function createSimulatedTopUps(config: Config, { database, ids }: Pick<Deps, "database" | "ids">): TopUps {
  return new TopUps({
    database,
    ids,
    provider: new SimulatedPayments((id) => findTopUp(database, id)),
    ...config.simulatedAmounts,
    returnUrl: `${config.publicUrl}/account#/payments`,
    now: Date.now,
    onAlert: () => undefined,
  });
}

/** What tells customers about events. */
function createNotices(
  { config, log, listeners }: ComponentsOptions,
  { databases, drain, metrics }: { readonly databases: Databases; readonly drain: Drain; readonly metrics: Metrics },
): Pick<Deps, "eventWatch"> & { readonly deliverer: Deliverer } {
  const { single: database, monitor } = databases;
  const isOwnPort = (port: number) =>
    [config.port, config.adminPort, ...listeners.map((listener) => listener.port)].includes(port);
  const senderTo = (allowed: AddressRanges | undefined) =>
    new Sender(new DeliveryAddresses(allowed, isOwnPort), "vx-webhooks/1", () => timeOf(databases.clocks, 0));
  const deliverer = new Deliverer({
    database,
    senders: {
      operators: senderTo(config.operatorWebhookRanges),
      customers: senderTo(config.customerWebhookRanges),
    },
    random: Math.random,
    onAttempt: ({ status, error, latencyMs }) => {
      const outcome = error === "" ? "accepted" : status === undefined ? "no_answer" : "refused";
      metrics.webhookAttempts.inc([outcome]);
      metrics.webhookDuration.observe([], latencyMs / 1_000);
    },
    onFailure: (cell, error) =>
      log.error({ cell: database.nameOf(cell) || undefined, err: error }, "a round of deliveries failed"),
  });
  metrics.gauge("vx_webhook_running", "Deliveries that are under way.", () => deliverer.running);
  drain.startSignal.addEventListener("abort", () => deliverer.endClaims(), { once: true });
  const eventWatch = new EventWatch({
    database: monitor,
    drainSignal: drain.startSignal,
    onFailure: (error) => log.warn({ err: error }, "looking for new events failed"),
  });
  return { deliverer, eventWatch };
}

function createFailureRecorder(
  log: Log,
  { metrics, ...others }: Pick<Deps, "database" | "ids"> & { readonly metrics: Metrics },
): FailureRecorder {
  return new FailureRecorder({
    ...others,
    onOmitted: (cause, calls) => metrics.omittedFailures.inc([cause], calls),
    onFailure: (error) => log.warn({ err: error }, "storing failed calls failed"),
  });
}

function registerGauges(metrics: Metrics, admitter: Admitter, database: Databases["single"]): void {
  metrics.gauge("vx_admission_queue_depth", "Calls that wait for the next admission batch.", () => admitter.depth);
  metrics.gauge("vx_database_connections", "Open connections for single statements.", () => database.connections);
  metrics.gauge("vx_database_statements", "Single statements that run or wait.", () => database.running);
}

type UpstreamsOptions = {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly tokens: TokenCounter;
  readonly log: Log;
  readonly metrics: Metrics;
  /** Undefined if no metrics are exported. */
  readonly recordAttempt: RecordAttempt | undefined;
};

/** Creates a runner that has no models yet. */
export function createUpstreams(options: UpstreamsOptions): Runner {
  const { env, tokens, log, metrics, recordAttempt } = options;
  const connections = new Connections();
  const runner = new Runner({
    limits: RUNNER_LIMITS,
    open: (settings) =>
      openUpstream(settings, {
        connections,
        env,
        loadFirstTokens: () => tokens.loadFirstTokens(),
        openSandbox: (sandbox) =>
          new SandboxUpstream({
            settings: sandbox,
            countPrompt: tokens.countPrompt.bind(tokens),
          }),
      }),
    now: performance.now.bind(performance),
    random: Math.random,
    sleep: (ms, signal) => sleep(ms, undefined, { signal }),
    onReport: reportAttempts({ log, metrics, recordAttempt }),
  });
  const gauge = (name: string, help: string, read: (status: ReturnType<Runner["status"]>[number]) => number) =>
    metrics.gaugesOf(name, help, "upstream", () => runner.status().map((status) => [status.name, read(status)]));
  gauge("vx_upstream_running", "Calls that run at an upstream.", ({ running }) => running);
  gauge("vx_upstream_waiting", "Calls that wait for an upstream.", ({ waiting }) => waiting);
  gauge("vx_upstream_open", "1 while the breaker of an upstream is open for all accounts.", ({ breaker }) =>
    breaker === "closed" ? 0 : 1,
  );
  gauge("vx_upstream_open_accounts", "Accounts for which the breaker of an upstream is open.", (status) => status.openAccounts);
  return runner;
}

const GAUGES = {
  open: { name: "vx_holds", help: "Open holds of all servers that use the database." },
  heldMicros: { name: "vx_held_micros", help: "The sum of the open holds, in micros." },
  expired: { name: "vx_expired_holds", help: "Holds that have expired and are not released yet." },
};

type ReloadOptions = {
  readonly path: string | undefined;
  readonly catalog: Catalog;
  readonly upstreams: Runner;
  readonly database: Cells;
  readonly log: Log;
};

/** Reloads the models file. An invalid file, or a failing database, changes nothing. Running calls keep their model. */
async function reloadModels({ path, catalog, upstreams, database, log }: ReloadOptions): Promise<void> {
  if (path === undefined) return;
  try {
    const models = await registerPrices(database, await readModels(path, process.env));
    await upstreams.use(models);
    catalog.replace(models);
    warnOfExposedKeys(models, log);
    log.info({ models: models.length }, "reloaded models");
  } catch (error) {
    const message = "reloading models failed, the previous models stay in use";
    if (error instanceof ModelsError) log.error({ mistakes: error.message }, message);
    else if (error instanceof DomainError) log.error({ err: error }, message);
    else throw error;
  }
}

/** Reloads cells.yaml: new cells can be used from now on. An invalid file changes nothing. */
async function reloadCells(path: string | undefined, waiting: WaitingCells, log: Log): Promise<void> {
  try {
    const { added, changed } = waiting.reload((await readCells(path)) ?? []);
    if (added.length > 0) log.info({ added }, "added cells");
    if (changed.length > 0) log.error({ changed }, "changed and removed cells take effect after a restart");
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    log.error({ mistakes: error.message }, "reloading cells failed, the previous cells stay in use");
  }
}
