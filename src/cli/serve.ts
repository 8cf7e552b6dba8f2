import { type Running, startApp } from "../app/app.ts";
import { StartInterrupted } from "../app/database-wait.ts";
import { type Config, readConfig } from "../app/settings/config.ts";
import { ConfigError, StartError } from "../app/start-error.ts";
import { EmbeddedPostgresError } from "../database/embedded/error.ts";
import { MigrationError } from "../database/schema/release.ts";
import { ModelsError } from "../models/problems.ts";
import { createLog, flushed, type Log } from "../telemetry/log.ts";
import { EXIT_FAILED, EXIT_USAGE } from "./failure.ts";
import { prepareForLoad, ReloadRequests, StopRequest } from "./server-process.ts";
import { shell } from "./shell.ts";

/** Runs the server until a signal stops it; returns the exit code. */
export async function serve(isJson: boolean): Promise<number> {
  let config: Config;
  try {
    config = readConfig(shell.env);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return endWithConfigError(error);
  }
  const log = createLog(config.logLevel);
  try {
    return await run(config, log, isJson ? printJson : printText);
  } finally {
    await flushed(log);
  }
}

type Print = Parameters<typeof startApp>[0]["print"];

const printText: Print = (text) => shell.stdout.write(`${text}\n`);
const printJson: Print = (text, fields) => shell.stdout.write(`${JSON.stringify({ message: text.trim(), ...fields })}\n`);

async function run(config: Config, log: Log, print: Print): Promise<number> {
  const { modelsFile, cellsFile, adminTokenFile, leakKeysFile, tls, adminTls } = config;
  const hasFiles = [modelsFile, cellsFile, adminTokenFile, leakKeysFile, tls, adminTls].some(Boolean);
  // Without files to reload, SIGHUP stops the server: it is the signal of a terminal that was closed.
  const signals: NodeJS.Signals[] = hasFiles ? ["SIGINT", "SIGTERM"] : ["SIGINT", "SIGTERM", "SIGHUP"];
  const stop = new StopRequest(log, config.shutdownDelayMs, signals);
  const reloads = new ReloadRequests(log);
  if (hasFiles) process.on("SIGHUP", () => reloads.request());
  let app: Running;
  try {
    app = await startApp({
      config,
      log,
      print,
      stopSignal: stop.signal,
    });
  } catch (error) {
    if (error instanceof StartInterrupted) {
      log.info("stopped while waiting for the database");
      return stop.exitCode;
    }
    if (error instanceof ConfigError) return endWithConfigError(error);
    if (error instanceof ModelsError) {
      shell.stderr.write(`vx: invalid models file\n${error.message}\n`);
      return EXIT_USAGE;
    }
    if (![StartError, MigrationError, EmbeddedPostgresError].some((kind) => error instanceof kind)) throw error;
    shell.stderr.write(`vx: ${(error as Error).message}\n`);
    return EXIT_FAILED;
  }
  log.info({ admin: app.adminUrl, pid: process.pid }, "operator listener is open");
  await prepareForLoad();
  reloads.start(() => app.reload());
  // The ready line must come last, even if stdout and stderr go to the same place.
  if (log.isLevelEnabled("info")) await flushed(log);
  print(`vx ready on ${app.url}`, { url: app.url, admin_url: app.adminUrl });
  const { delayMs, isGraceful } = await stop.requested;
  log.info({ delay_ms: delayMs }, "stopping, waiting for running calls");
  try {
    await app.stop(delayMs, isGraceful);
  } catch (error) {
    log.error({ err: error }, "stop failed");
    return stop.exitCode || EXIT_FAILED;
  }
  log.info("stopped");
  return stop.exitCode;
}

function endWithConfigError(error: ConfigError): number {
  shell.stderr.write(`vx: invalid settings\n${error.message}\n`);
  return EXIT_USAGE;
}
