import cluster, { type Worker } from "node:cluster";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";
import type { DatabaseAddress } from "../database/driver/connect.ts";
import { InvariantViolation, reportViolation } from "../domain/invariant.ts";
import type { Log } from "../telemetry/log.ts";
import { type Snapshot, WorkerMetrics } from "../telemetry/worker-metrics.ts";
import { interruption } from "./database-wait.ts";
import { STOP_MS } from "./drain.ts";
import { ConfigError, StartError } from "./start-error.ts";

/** Server processes that share the public port. */
export type Workers = {
  readonly address: AddressInfo;
  readMetrics(own: Registry): Promise<Registry>;
  /** Makes the workers reload the models and the TLS certificates. */
  reload(): void;
  stop(delayMs: number, isGraceful: boolean): Promise<void>;
};

type WorkerDatabase = { readonly address: DatabaseAddress; readonly role: string };

export type ToWorker =
  | { readonly kind: "start"; readonly database: WorkerDatabase }
  | { readonly kind: "stop"; readonly delayMs: number; readonly isGraceful: boolean }
  | { readonly kind: "reload" }
  | { readonly kind: "metrics"; readonly id: number };
export type FromWorker =
  | { readonly kind: "ready"; readonly address: AddressInfo }
  | { readonly kind: "failed"; readonly message: string; readonly isConfigError: boolean }
  /** The worker accepts no more calls and exits when its running calls have finished. */
  | { readonly kind: "crashed" }
  /** The same after a violated invariant. It ends all workers: they run the same code on the same database. */
  | { readonly kind: "violated" }
  | { readonly kind: "metrics"; readonly id: number; readonly metrics: Snapshot };

/** Delays the restart, so that a worker that exits at once is not restarted in a tight loop. */
const RESTART_MS = 1_000;
const METRICS_WAIT_MS = 2_000;

/** Until all workers are ready, `stopSignal` stops them, and this throws StartInterrupted. */
export async function startWorkers(count: number, database: WorkerDatabase, log: Log, stopSignal: AbortSignal): Promise<Workers> {
  let stopping = false;
  const metrics = new WorkerMetrics();
  const fork = (): Promise<AddressInfo> => {
    const worker = cluster.fork();
    closeUnconfirmed(worker);
    metrics.started(worker.id);
    send(worker, { kind: "start", database });
    let isReplaced = false;
    const replace = (details: object, message: string) => {
      if (stopping || isReplaced) return;
      isReplaced = true;
      log.error({ ...details, pid: worker.process.pid }, message);
      setTimeout(() => {
        if (!stopping) fork().catch((error: unknown) => log.error({ err: error }, "starting a worker failed"));
      }, RESTART_MS);
    };
    return new Promise((resolve, reject) => {
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "ready") resolve(message.address);
        if (message.kind === "failed")
          reject(message.isConfigError ? new ConfigError(message.message) : new StartError(message.message));
        if (message.kind === "crashed") replace({}, "worker crashed, starting another one");
        if (message.kind === "violated") {
          stopping = true;
          reportViolation(new InvariantViolation("a worker keeps the invariants", { pid: worker.process.pid }));
        }
        if (message.kind === "metrics") metrics.record(worker.id, message.metrics);
      });
      worker.once("exit", (code, signal) => {
        metrics.ended(worker.id);
        reject(new StartError(`a worker exited during the start (${signal ?? code})`));
        replace({ code, signal }, "worker exited, starting another one");
      });
    });
  };
  const stop = async (delayMs: number, isGraceful: boolean) => {
    stopping = true;
    const workers = Object.values(cluster.workers ?? {});
    await Promise.all(workers.map((worker) => worker && stopWorker(worker, delayMs, isGraceful)));
  };
  try {
    const forked = Promise.all(Array.from({ length: count }, fork));
    const [address] = await Promise.race([forked, interruption(stopSignal)]);
    const readMetrics = async (own: Registry) => {
      await requestMetrics();
      return metrics.aggregate(await own.getMetricsAsJSON());
    };
    return { address: address as AddressInfo, readMetrics, reload, stop };
  } catch (error) {
    await stop(0, false);
    throw error;
  }
}

type Connection = { close(): void };

/** The connections that were sent to a worker, until it confirms them. */
const unconfirmed = new Map<Connection, Worker>();

/** Node never closes a connection that a worker did not confirm before it was killed: its client would wait forever. */
function closeUnconfirmed(worker: Worker): void {
  const child = worker.process;
  const sendToChild = child.send.bind(child) as (...values: unknown[]) => boolean;
  child.send = (message: unknown, connection?: unknown, ...rest: unknown[]) => {
    if (connection) track(connection as Connection, worker);
    return sendToChild(message, connection, ...rest);
  };
  worker.once("exit", () => {
    for (const [connection, receiver] of unconfirmed) if (receiver === worker) connection.close();
  });
}

/** Node closes its copy when a worker confirms. A connection that a worker refuses is sent to another one, which replaces it here. */
function track(connection: Connection, worker: Worker): void {
  if (!unconfirmed.has(connection)) {
    const close = connection.close.bind(connection);
    connection.close = () => {
      unconfirmed.delete(connection);
      close();
    };
  }
  unconfirmed.set(connection, worker);
}

async function stopWorker(worker: Worker, delayMs: number, isGraceful: boolean): Promise<void> {
  const exited = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  send(worker, { kind: "stop", delayMs, isGraceful });
  // Kill a worker that hangs, so that the server can exit.
  const timer = setTimeout(() => worker.process.kill("SIGKILL"), delayMs + STOP_MS);
  await exited;
  clearTimeout(timer);
}

/** Needs no message to workers that are still starting: they read the current files. */
function reload(): void {
  for (const worker of Object.values(cluster.workers ?? {})) if (worker) send(worker, { kind: "reload" });
}

let metricsRequests = 0;

async function requestMetrics(): Promise<void> {
  const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  await Promise.all(workers.map((worker) => requestMetricsOf(worker, metricsRequests++)));
}

/** Resolves after a timeout if the worker is busy or exiting. */
function requestMetricsOf(worker: Worker, id: number): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer);
      worker.off("message", listen);
      worker.off("exit", done);
      resolve();
    };
    const listen = (message: FromWorker) => {
      if (message.kind === "metrics" && message.id === id) done();
    };
    const timer = setTimeout(done, METRICS_WAIT_MS);
    worker.on("message", listen);
    worker.on("exit", done);
    send(worker, { kind: "metrics", id });
  });
}

function send(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message);
}
