import cluster, { type Worker } from "node:cluster";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";
import type { Log } from "./log.ts";
import { StartError } from "./start-error.ts";
import type { DatabaseAddress } from "./store/connect.ts";
import { type Snapshot, WorkerMetrics } from "./worker-metrics.ts";

/** Server processes that share the public port. */
export type Workers = {
  readonly address: AddressInfo;
  /** The metrics of all workers and of this process. */
  readMetrics(own: Registry): Promise<string>;
  reloadModels(): void;
  stop(): Promise<void>;
};

type WorkerDatabase = { readonly address: DatabaseAddress; readonly role: string };

export type ToWorker =
  | { readonly kind: "start"; readonly database: WorkerDatabase }
  | { readonly kind: "stop" }
  | { readonly kind: "reload_models" }
  | { readonly kind: "metrics"; readonly id: number };
export type FromWorker =
  | { readonly kind: "ready"; readonly address: AddressInfo }
  | { readonly kind: "failed"; readonly message: string }
  | { readonly kind: "metrics"; readonly id: number; readonly metrics: Snapshot };

/** A worker that dies again at once is not started in a tight circle. */
const RESTART_MS = 1_000;
/** Longer than a drain takes, and after it a settlement that waits for the database. */
const STOP_MS = 100_000;
const METRICS_WAIT_MS = 2_000;

export async function startWorkers(count: number, database: WorkerDatabase, log: Log): Promise<Workers> {
  let stopping = false;
  const metrics = new WorkerMetrics();
  const fork = (): Promise<AddressInfo> => {
    const worker = cluster.fork();
    metrics.started(worker.id);
    send(worker, { kind: "start", database });
    return new Promise((resolve, reject) => {
      worker.on("message", (message: FromWorker) => {
        if (message.kind === "ready") resolve(message.address);
        if (message.kind === "failed") reject(new StartError(message.message));
        if (message.kind === "metrics") metrics.told(worker.id, message.metrics);
      });
      worker.once("exit", (code, signal) => {
        metrics.ended(worker.id);
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
    const readMetrics = async (own: Registry) => {
      await askForMetrics();
      return await metrics.read(await own.getMetricsAsJSON());
    };
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

async function askForMetrics(): Promise<void> {
  const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
  await Promise.all(workers.map((worker) => askWorker(worker, metricsRequests++)));
}

/** Nobody waits long for one that is busy or dying. */
function askWorker(worker: Worker, id: number): Promise<void> {
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
