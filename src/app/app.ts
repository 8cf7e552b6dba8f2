import type { AddressInfo } from "node:net";
import * as sql from "../../gen/sql/calls.ts";
import type { FunctionCaller } from "../database/driver/cells.ts";
import type { DatabaseAddress } from "../database/driver/connect.ts";
import { RELEASE } from "../database/schema/release.ts";
import { LANE_COUNT, laneRanges, lanesOfText } from "../domain/lane.ts";
import type { Model } from "../domain/model.ts";
import { removeServers } from "../generations/presence.ts";
import { Catalog } from "../models/catalog.ts";
import { readModels } from "../models/read-models.ts";
import type { Listener } from "../server/http/listener.ts";
import type { Log } from "../telemetry/log.ts";
import type { Telemetry } from "../telemetry/telemetry.ts";
import { AdminTokens } from "./admin-tokens.ts";
import type { createComponents } from "./components.ts";
import { DatabaseWait } from "./database-wait.ts";
import { type DatabaseLogin, requireCurrency } from "./databases.ts";
import { examineAtStart } from "./doctor.ts";
import { warnOfExposedKeys } from "./exposed-file.ts";
import { prepareDatabase } from "./prepare-database.ts";
import { announceDemo } from "./seed-demo.ts";
import { readCells } from "./settings/cells.ts";
import { type Config, warnOfUnknownSettings } from "./settings/config.ts";
import { LeakKeys } from "./settings/leak-keys.ts";
import { reloadTls } from "./settings/tls.ts";
import { ConfigError, StartError } from "./start-error.ts";
import { startWorkers, type Workers } from "./workers.ts";

type AppOptions = {
  readonly config: Config;
  readonly log: Log;
  /** Prints a text for people; the fields are what programs read of it. */
  readonly print: (text: string, fields?: Readonly<Record<string, string>>) => void;
  /** Ends the wait for the database. */
  readonly stopSignal: AbortSignal;
};

/** A process that can be stopped: the whole app, or one of its workers. */
export type Running = {
  readonly url: string;
  readonly adminUrl: string;
  /** Reloads the operator tokens, the keys of leak reports, the models, the cells and the TLS certificates, here and in all workers. */
  reload(): Promise<void>;
  /**
   * Accepts calls for another `delayMs`, then waits for running calls and closes everything. If `isGraceful`, callers get time
   * to stop using their open connections.
   */
  stop(delayMs?: number, isGraceful?: boolean): Promise<void>;
};

/** Starts everything: database, schema, operator listener, and the public listener here or in workers. */
export async function startApp({ config, log, print, stopSignal }: AppOptions): Promise<Running> {
  const [adminTokens, leakKeys] = [AdminTokens.load(config, log), LeakKeys.load(config.leakKeysFile)];
  const catalog = new Catalog(await readFirstModels(config, log));
  const load = () => import("./servers.ts");
  // A failed import is reported where the module is used.
  const onWait = () => void load().catch(() => undefined);
  const cells = await readCells(config.cellsFile);
  const databaseWait = new DatabaseWait({ config, log, stopSignal, openProbes: () => openProbes(config) });
  const closers: ((delayMs: number, isGraceful: boolean) => Promise<void>)[] = [() => databaseWait.end()];
  const listeners: Listener[] = [];
  let workers: Workers | undefined;
  let examined: Promise<void> | undefined;
  const stop = (delayMs = 0, isGraceful = false) =>
    closeAll(
      closers
        .splice(0)
        .reverse()
        .map((close) => () => close(delayMs, isGraceful)),
    );
  try {
    const prepare = () => prepareDatabase({ config, cells, log, print, onWait });
    const isRemote = config.databaseUrl !== undefined;
    const prepared = await (isRemote ? databaseWait.until(prepare) : prepare());
    closers.push(() => prepared.stop());
    const { createComponents, createPublicServer, createOperatorServer } = await load();
    const telemetry = await openTelemetry(config, log);
    const shared = { config, log, catalog, cells, telemetry, leakKeys, listeners };
    const components = createComponents({ ...shared, login: prepared, maintenance: prepared });
    closers.push(() => components.close());
    closers.push(async (delayMs, isGraceful) => {
      const drained = components.drain(listeners, delayMs, isGraceful);
      await Promise.all([drained, workers?.stop(delayMs, isGraceful), examined]);
    });
    await useDatabase(components, {
      isOneCell: cells === undefined,
      isExclusive: prepared.exclusive,
      databaseWait,
    });
    examined = warnOfFindings(config, isRemote || cells ? undefined : prepared.address, log);
    let publicAddress: AddressInfo;
    let publicServer: Listener | undefined;
    if (config.workers === 1) {
      await components.start();
      publicServer = createPublicServer({ ...components, config, log });
      publicAddress = await open(publicServer, config.host, PUBLIC, listeners);
    } else {
      workers = await startWorkers(config.workers, { address: prepared.address, role: prepared.role }, log, stopSignal);
      publicAddress = workers.address;
    }

    const { metrics } = components;
    components.startUpkeep();
    const readMetrics = async () => {
      metrics.startProcessMetrics();
      return (await workers?.readMetrics(metrics.registry)) ?? metrics.registry;
    };
    const operator = createOperatorServer({ ...components, config, log, adminTokens, readMetrics });
    const adminAddress = await open(operator, config.adminHost, OPERATOR, listeners);

    // The key is shown only once, so it is created after every step that can fail.
    const url = urlOf(config.tls ? "https" : "http", publicAddress);
    if (config.seedDemo) await announceDemo({ config, deps: components.deps, url, print });
    const reload = async () => {
      workers?.reload();
      await adminTokens.reload(log);
      if (publicServer) reloadTls(publicServer, config.tls, log);
      reloadTls(operator, config.adminTls, log);
      await components.reload();
    };
    return { url, adminUrl: urlOf(config.adminTls ? "https" : "http", adminAddress), reload, stop };
  } catch (error) {
    await stop().catch((failure: unknown) => log.error({ err: failure }, "stop failed"));
    throw error;
  }
}

async function readFirstModels({ modelsFile }: Config, log: Log): Promise<readonly Model[]> {
  const models = await readModels(modelsFile, process.env);
  warnOfUnknownSettings(process.env, models, log);
  warnOfExposedKeys(models, log);
  return models;
}

/** Runs while the rest starts, which a cell that does not respond would delay. */
async function warnOfFindings(config: Config, embedded: DatabaseAddress | undefined, log: Log): Promise<void> {
  try {
    for (const { check, status, message, advice } of await examineAtStart({ config, embedded })) {
      if (status !== "ok") log.warn({ check, advice }, message);
    }
  } catch (error) {
    log.warn({ err: error }, "checking the settings and the database failed");
  }
}

type UseOptions = {
  readonly isOneCell: boolean;
  /** Whether no other server uses the database. */
  readonly isExclusive: boolean;
  readonly databaseWait: DatabaseWait;
};

async function useDatabase(
  components: Pick<ReturnType<typeof createComponents>, "deps" | "openCells" | "registerPrices">,
  { isOneCell, isExclusive, databaseWait }: UseOptions,
): Promise<void> {
  const { home } = components.deps.database;
  await databaseWait.until(() => components.openCells());
  await databaseWait.until(async () => {
    await requireCurrency(home);
    if (isOneCell) await requireAllLanes(home);
    await components.registerPrices();
  });
  await databaseWait.end();
  if (isExclusive) await removeServers(home);
}

/** Starts only the public listener, on a prepared database. A worker runs this. */
export async function startWorker(config: Config, log: Log, login: DatabaseLogin, stopSignal: AbortSignal) {
  const { createComponents, createPublicServer } = await import("./servers.ts");
  const catalog = new Catalog(await readModels(config.modelsFile, process.env));
  const telemetry = await openTelemetry(config, log);
  const cells = await readCells(config.cellsFile);
  const listeners: Listener[] = [];
  const components = createComponents({
    config,
    log,
    listeners,
    catalog,
    login,
    cells,
    maintenance: undefined,
    telemetry,
    leakKeys: LeakKeys.load(config.leakKeysFile),
  });
  const databaseWait = new DatabaseWait({
    config,
    log,
    stopSignal,
    openProbes: async () => async () => undefined,
  });
  await databaseWait.until(() => components.openCells());
  await databaseWait.until(() => components.registerPrices());
  await components.start();
  const server = createPublicServer({ ...components, config, log });
  const address = await open(server, config.host, PUBLIC, listeners);
  const reload = async () => {
    reloadTls(server, config.tls, log);
    await components.reload();
  };
  const stop = (delayMs: number, isGraceful: boolean) =>
    closeAll([() => components.drain(listeners, delayMs, isGraceful), () => components.close()]);
  const readMetrics = async () => {
    components.metrics.startProcessMetrics();
    return await components.metrics.registry.getMetricsAsJSON();
  };
  return { address, readMetrics, reload, stop };
}

/** A cell used as the only database would refuse the calls of all accounts of other cells. */
async function requireAllLanes(database: FunctionCaller): Promise<void> {
  const [state] = await sql.cellState(database);
  const lanes = lanesOfText(state?.lanes ?? "");
  if (lanes.length === LANE_COUNT) return;
  throw new ConfigError(
    `VX_CELLS: is missing: the database is one of several cells, it owns only ${lanes.length} of ${LANE_COUNT} lanes (${laneRanges(lanes)}); ` +
      "set VX_CELLS to the path of a cells.yaml with all cells, in place of DATABASE_URL",
  );
}

/** Closes one after the other. A failure does not prevent the rest from being closed. */
export async function closeAll(closers: readonly (() => Promise<void>)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const close of closers) await close().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw new AggregateError(failures, "some components failed to close");
}

const PUBLIC: ListenSettings = { host: "VX_HOST", port: "PORT" };
const OPERATOR: ListenSettings = { host: "VX_ADMIN_HOST", port: "VX_ADMIN_PORT" };

async function open(listener: Listener, host: string, settings: ListenSettings, opened: Listener[]): Promise<AddressInfo> {
  try {
    const address = await listener.open();
    opened.push(listener);
    return address;
  } catch (error) {
    const problem = listenProblem(error, host, settings);
    // The host can never be used on this machine, so its setting is invalid.
    const isInvalidHost = ["EADDRNOTAVAIL", "ENOTFOUND"].includes((error as NodeJS.ErrnoException).code ?? "");
    throw isInvalidHost ? new ConfigError(problem) : new StartError(problem);
  }
}

/** Opens listeners that only answer probes, and returns how to close them. */
async function openProbes(config: Config): Promise<() => Promise<void>> {
  const { createWaitingServers } = await import("./servers.ts");
  const { publicServer, operatorServer } = createWaitingServers(config);
  const opened: Listener[] = [];
  const close = () => closeAll(opened.map((listener) => () => listener.close(0)));
  try {
    await open(publicServer, config.host, PUBLIC, opened);
    await open(operatorServer, config.adminHost, OPERATOR, opened);
  } catch (error) {
    await close();
    throw error;
  }
  for (const listener of opened) listener.prepareClose();
  return close;
}

function urlOf(scheme: string, { address, port, family }: AddressInfo): string {
  return `${scheme}://${family === "IPv6" ? `[${address}]` : address}:${port}`;
}

/** Undefined, with nothing of OpenTelemetry loaded, if the settings enable no export. */
async function openTelemetry({ telemetry }: Config, log: Log): Promise<Telemetry | undefined> {
  if (!telemetry) return undefined;
  const { startTelemetry } = await import("../telemetry/otel/start-telemetry.ts");
  return startTelemetry(telemetry, { log, version: RELEASE });
}

/** The settings that an operator changes when a listener cannot be opened. */
type ListenSettings = {
  readonly host: "VX_HOST" | "VX_ADMIN_HOST";
  readonly port: "PORT" | "VX_ADMIN_PORT";
};

/** Why a listener cannot be opened: the setting, its error and the remedy. */
function listenProblem(error: unknown, host: string, settings: ListenSettings): string {
  const { code, message, port } = error as NodeJS.ErrnoException & { port?: number };
  switch (code) {
    case "EADDRINUSE":
      return `${settings.port}: port ${port} on ${host} is in use by another program; stop it, or set ${settings.port} to a free port`;
    case "EACCES":
      return `${settings.port}: this user may not listen on port ${port}; set ${settings.port} to 1024 or more`;
    case "EADDRNOTAVAIL":
      return `${settings.host}: ${host} is not an address of this machine; 127.0.0.1 and 0.0.0.0 always are`;
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return `${settings.host}: the host name ${JSON.stringify(host)} has no address; 127.0.0.1 and 0.0.0.0 always work`;
    default:
      return `${settings.host}, ${settings.port}: ${message}`;
  }
}
