import { startWorker } from "../app/app.ts";
import { StartInterrupted } from "../app/database-wait.ts";
import { STOP_MS } from "../app/drain.ts";
import { readConfig } from "../app/settings/config.ts";
import { ConfigError } from "../app/start-error.ts";
import type { FromWorker, ToWorker } from "../app/workers.ts";
import { createLog, flushed } from "../telemetry/log.ts";
import { EXIT_FAILED, EXIT_INVARIANT } from "./failure.ts";
import { endAfter, onCrash, prepareForLoad, ReloadRequests } from "./server-process.ts";

type Worker = Awaited<ReturnType<typeof startWorker>>;

/** Runs one of several server processes, controlled by the process that forked it. */
export async function runWorker(): Promise<void> {
  const config = readConfig(process.env);
  const log = createLog(config.logLevel);
  // Ignored, because a terminal signals every process of the group. A worker stops when its parent requests it.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  const { promise: started, resolve: start } = Promise.withResolvers<Extract<ToWorker, { kind: "start" }>["database"]>();
  const { promise: stopped, resolve: stop } = Promise.withResolvers<Parameters<Worker["stop"]>>();
  const stopping = new AbortController();
  void stopped.then(() => stopping.abort());
  let exitCode = 0;
  onCrash(log, (code) => {
    if (exitCode === 0) endAfter(STOP_MS, log, () => exitCode);
    if (code > exitCode) tell({ kind: code === EXIT_INVARIANT ? "violated" : "crashed" });
    exitCode = Math.max(exitCode, code);
    stop([0, false]);
  });
  let answerMetrics: (id: number) => void = () => undefined;
  const reloads = new ReloadRequests(log);
  process.on("message", (message: ToWorker) => {
    if (message.kind === "start") start(message.database);
    else if (message.kind === "stop") stop([message.delayMs, message.isGraceful]);
    else if (message.kind === "metrics") answerMetrics(message.id);
    else reloads.request();
  });
  // The parent process is gone, so nothing else would stop this worker.
  process.on("disconnect", () => stop([0, false]));
  try {
    const worker = await startWorker(config, log, await started, stopping.signal);
    await prepareForLoad();
    reloads.start(worker.reload);
    answerMetrics = (id) => {
      worker.readMetrics().then(
        (metrics) => tell({ kind: "metrics", id, metrics }),
        (error: unknown) => log.error({ err: error }, "reading metrics failed"),
      );
    };
    tell({ kind: "ready", address: worker.address });
    await worker.stop(...(await stopped));
  } catch (error) {
    if (!(error instanceof StartInterrupted)) {
      log.error({ err: error }, "worker failed");
      const isConfigError = error instanceof ConfigError;
      tell({ kind: "failed", message: (error as Error).message, isConfigError });
      exitCode ||= EXIT_FAILED;
    }
  }
  await flushed(log);
  process.exit(exitCode);
}

function tell(message: FromWorker): void {
  if (process.connected) process.send?.(message);
}
