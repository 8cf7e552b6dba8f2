import { type Running, startApp } from "../app.ts";
import { type Config, ConfigError, readConfig } from "../config.ts";
import { EmbeddedPostgresError } from "../embedded/error.ts";
import { createLog, flushed, type Log } from "../log.ts";
import { ModelsError } from "../models/models-error.ts";
import { StartError } from "../start-error.ts";
import { MigrationError } from "../store/migrate.ts";
import { EXIT_FAILED, EXIT_USAGE } from "./exit.ts";
import { letYoungGenerationGrow } from "./young-generation.ts";

/** Runs the server until a signal stops it; returns the exit code. */
export async function serve(): Promise<number> {
  let config: Config;
  try {
    config = readConfig(process.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    process.stderr.write(`vx: wrong setting\n${error.message}\n`);
    return EXIT_USAGE;
  }
  const log = createLog(config.logLevel);
  const stopped = untilSignal(log);
  keepAlive(log);
  let app: Running;
  try {
    app = await startApp({ config, log, say: (line) => process.stdout.write(`${line}\n`) });
  } catch (error) {
    if (error instanceof ModelsError) {
      process.stderr.write(`vx: wrong models\n${error.message}\n`);
      return EXIT_USAGE;
    }
    if (!isForPeople(error)) throw error;
    process.stderr.write(`vx: ${(error as Error).message}\n`);
    return EXIT_FAILED;
  }
  log.info({ admin: app.adminUrl }, "operator listener is open");
  letYoungGenerationGrow();
  // Without a file there is nothing to read again, and the end of the terminal ends the server as ever.
  if (config.modelsFile !== undefined) process.on("SIGHUP", () => app.reloadModels());
  // The last line is that the server is ready, also where both go to one place.
  if (log.isLevelEnabled("info")) await flushed(log);
  process.stdout.write(`vx ready on ${app.url}\n`);
  log.info({ signal: await stopped }, "stopping: running calls may finish");
  try {
    await app.stop();
  } catch (error) {
    log.error({ err: error }, "not everything was stopped");
    return EXIT_FAILED;
  }
  log.info("stopped");
  return 0;
}

function untilSignal(log: Log): Promise<NodeJS.Signals> {
  return new Promise((resolve) => {
    let asked = false;
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      process.on(signal, () => {
        if (asked) log.warn({ signal }, "already stopping; running calls have up to 30 s");
        asked = true;
        resolve(signal);
      });
    }
  });
}

/** No byte from outside may end the process: what slips through everything else is logged, and calls go on. */
export function keepAlive(log: Log): void {
  process.on("uncaughtException", (error) => log.fatal({ err: error }, "uncaught exception"));
  process.on("unhandledRejection", (error) => log.fatal({ err: error }, "unhandled rejection"));
}

function isForPeople(error: unknown): boolean {
  return (
    error instanceof StartError || error instanceof MigrationError || error instanceof EmbeddedPostgresError
  );
}
