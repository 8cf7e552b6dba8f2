import cluster, { type Worker } from "node:cluster";
import type { AddressInfo } from "node:net";
import { AggregatorRegistry, type Registry } from "prom-client";
import type { Log } from "./log.ts";
import { StartError } from "./start-error.ts";
import type { DatabaseAddress } from "./store/connect.ts";

/** Server processes that share the public port. */
export type Workers = {
  readonly address: AddressInfo;
  /** The metrics of all workers and of this process. */
  readMetrics(own: Registry): Promise<string>;
  reloadModels(): void;
  stop(): Promise<void>;
};

export type WorkerDatabase = { readonly address: DatabaseAddress; readonly role: string };

export type ToWorker =
  | { readonly kind: "start"; readonly database: WorkerDatabase }
  | { readonly kind: "stop" }
  | { readonly kind: "reload_models" }
  | { readonly kind: "metrics"; readonly id: number };
export type FromWorker =
  | { readonly kind: "ready"; readonly address: AddressInfo }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "metrics"; readonly id: number; readonly metrics: object[] };

/** A worker that dies again at once is not started in a tight circle. */
const RESTART_MS = 1_000;
/** Longer than a drain takes. */
const STOP_MS = 35_000;
const METRICS_WAIT_MS = 2_000;

export async function startWorkers(count: number, database: WorkerDatabase, log: Log): Promise<Workers> {
  let stopping = false;
  const fork = (): Promise<AddressInfo> => {
    const worker = cluster.fork();
    send(worker, { kind: "start", database });
    return new Promise((resolve, reject) => {
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "ready") resolve(message.address);
        if (message.kind === "failed") reject(new StartError(message.message));
      });
      worker.once("exit", (code, signal) => {
        reject(new StartError(`a worker ended while it started (${signal ?? code})`));
        if (stopping) return;
        log.error({ code, signal, pid: worker.process.pid }, "a worker ended, another one is started");
        setTimeout(() => {
          if (!stopping)
            fork().catch((error: unknown) => log.error({ err: error }, "a worker could not be started"));
        }, RESTART_MS);
      });
    });
  };
  const stop = async () => {
    stopping = true;
    await Promise.all(Object.values(cluster.workers ?? {}).map((worker) => worker && stopWorker(worker)));
  };
  try {
    const [address] = await Promise.all(Array.from({ length: count }, fork));
    return { address: address as AddressInfo, readMetrics, reloadModels, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function stopWorker(worker: Worker): Promise<void> {
  const gone = new Promise<void>((resolve) => worker.once("exit", () => resolve()));
  send(worker, { kind: "stop" });
  // One that hangs would hold everything up for ever.
  const timer = setTimeout(() => worker.process.kill("SIGKILL"), STOP_MS);
  await gone;
  clearTimeout(timer);
}

/** Processes that start meanwhile read the file as it is then. */
function reloadModels(): void {
  for (const worker of Object.values(cluster.workers ?? {}))
    if (worker) send(worker, { kind: "reload_models" });
}

let metricsRequests = 0;

async function readMetrics(own: Registry): Promise<string> {
  const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  const answers = await Promise.all(workers.map((worker) => workerMetrics(worker, metricsRequests++)));
  return await AggregatorRegistry.aggregate([...answers, await own.getMetricsAsJSON()]).metrics();
}

/** What a busy or dying worker does not tell in time is left out. */
function workerMetrics(worker: Worker, id: number): Promise<object[]> {
  return new Promise((resolve) => {
    const done = (metrics: object[]) => {
      clearTimeout(timer);
      worker.off("message", listen);
      resolve(metrics);
    };
    const listen = (message: FromWorker) => {
      if (message.kind === "metrics" && message.id === id) done(message.metrics);
    };
    const timer = setTimeout(() => done([]), METRICS_WAIT_MS);
    worker.on("message", listen);
    send(worker, { kind: "metrics", id });
  });
}

function send(worker: Worker, message: ToWorker): void {
  if (worker.isConnected()) worker.send(message);
}
