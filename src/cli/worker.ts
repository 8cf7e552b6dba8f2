import { startWorker } from "../app.ts";
import { readConfig } from "../config.ts";
import { createLog } from "../log.ts";
import type { FromWorker, ToWorker } from "../workers.ts";
import { keepAlive } from "./serve.ts";
import { letYoungGenerationGrow } from "./young-generation.ts";

/** One of several server processes: does what the process that forked it says. */
export async function runWorker(): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  keepAlive(log);
  // The terminal's signals reach every process of the group; a worker stops when it is told to.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  const { promise: started, resolve: start } =
    Promise.withResolvers<Extract<ToWorker, { kind: "start" }>["database"]>();
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  let answerMetrics: (id: number) => void = () => undefined;
  // What comes while this process starts is done when it has.
  let reloadAsked = false;
  let reloadModels = async () => {
    reloadAsked = true;
  };
  process.on("message", (message: ToWorker) => {
    if (message.kind === "start") start(message.database);
    else if (message.kind === "stop") stop();
    else if (message.kind === "metrics") answerMetrics(message.id);
    else
      reloadModels().catch((error: unknown) => log.error({ err: error }, "models could not be read again"));
  });
  // Without the process that forked it nobody would ever stop it.
  process.on("disconnect", stop);
  try {
    const worker = await startWorker(config, log, await started);
    letYoungGenerationGrow();
    reloadModels = worker.reloadModels;
    if (reloadAsked) await reloadModels();
    answerMetrics = (id) => {
      worker.registry.getMetricsAsJSON().then(
        (metrics) => tell({ kind: "metrics", id, metrics }),
        (error: unknown) => log.error({ err: error }, "metrics could not be read"),
      );
    };
    tell({ kind: "ready", address: worker.address });
    await stopped;
    await worker.stop();
    process.exit(0);
  } catch (error) {
    tell({ kind: "failed", message: (error as Error).message });
    process.exit(1);
  }
}

function tell(message: FromWorker): void {
  if (process.connected) process.send?.(message);
}
