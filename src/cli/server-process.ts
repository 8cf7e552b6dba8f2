import { setFlagsFromString } from "node:v8";
import { STOP_MS } from "../app/drain.ts";
import { collectGarbage } from "../app/garbage.ts";
import { onViolation } from "../domain/invariant.ts";
import { flushed, type Log } from "../telemetry/log.ts";
import { EXIT_FAILED, EXIT_INVARIANT } from "./failure.ts";

/** Time for the embedded PostgreSQL, which stops after the server. */
const DATABASE_STOP_MS = 20_000;

/** Calls are accepted for another `delayMs`. After a crash, no caller gets time to stop using its connections. */
type Requested = { readonly delayMs: number; readonly isGraceful: boolean };

/** Waits for a signal or a crash. From then on, the process exits no later than the time limit for a stop. */
export class StopRequest {
  readonly #log: Log;
  readonly #requested = Promise.withResolvers<Requested>();
  readonly #abort = new AbortController();
  #isRequested = false;
  #exitCode = 0;

  constructor(log: Log, signalDelayMs: number, signals: readonly NodeJS.Signals[]) {
    this.#log = log;
    for (const signal of signals) {
      process.on(signal, () => {
        // A second signal is ignored: npm and systemd may both send one for the same stop.
        if (this.#isRequested) log.warn({ signal }, "already stopping, running calls have up to 30 s to finish");
        else this.#request({ delayMs: signalDelayMs, isGraceful: true });
      });
    }
    onCrash(log, (exitCode) => {
      this.#exitCode = Math.max(this.#exitCode, exitCode);
      this.#request({ delayMs: 0, isGraceful: false });
    });
  }

  /** Resolves to how the server should stop. */
  get requested(): Promise<Requested> {
    return this.#requested.promise;
  }

  /** Aborted when the stop is requested. */
  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** 0 unless the process crashed or violated an invariant. */
  get exitCode(): number {
    return this.#exitCode;
  }

  #request({ delayMs, isGraceful }: Requested): void {
    if (this.#isRequested) return;
    this.#isRequested = true;
    endAfter(delayMs + STOP_MS + DATABASE_STOP_MS, this.#log, () => this.#exitCode);
    this.#requested.resolve({ delayMs, isGraceful });
    this.#abort.abort();
  }
}

/** After an uncaught exception or a violated invariant the state of the process is unknown, so it stops. */
export function onCrash(log: Log, stop: (exitCode: number) => void): void {
  const crash = (message: string) => (error: unknown) => {
    stop(EXIT_FAILED);
    log.fatal({ err: error }, message);
  };
  process.on("uncaughtException", crash("uncaught exception"));
  process.on("unhandledRejection", crash("unhandled rejection"));
  onViolation(({ invariant, facts, stack }) => {
    stop(EXIT_INVARIANT);
    log.fatal({ invariant, facts, stack }, "invariant violated");
  });
}

/** Ends the process if the stop hangs. The exit code is that of the crash which caused the stop, if any. */
export function endAfter(ms: number, log: Log, exitCode: () => number): void {
  const end = async () => {
    log.fatal("stop timed out, exiting");
    await flushed(log);
    process.exit(exitCode() || EXIT_FAILED);
  };
  setTimeout(() => void end(), ms).unref();
}

/** Runs reloads one after the other. A reload requested during the start runs after it. */
export class ReloadRequests {
  readonly #log: Log;
  readonly #started = Promise.withResolvers<() => Promise<void>>();
  #last: Promise<void> = Promise.resolve();

  constructor(log: Log) {
    this.#log = log;
  }

  request(): void {
    this.#last = this.#last
      .then(async () => await (await this.#started.promise)())
      .catch((error: unknown) => this.#log.error({ err: error }, "reload failed"));
  }

  /** Sets the function that reloads. */
  start(reload: () => Promise<void>): void {
    this.#started.resolve(reload);
  }
}

/** Call this when the server is ready, before its first call. Takes about 0.1 s. */
export async function prepareForLoad(): Promise<void> {
  // Loading the code leaves garbage that V8 would not collect before the load demands it.
  await collectGarbage();
  // The memory of large bodies counts as garbage of a heap that is much smaller: V8 would collect it for every third of them.
  setFlagsFromString("--heap-growing-percent=100");
  // Otherwise V8 collects the whole heap for each 64 MiB of bodies and long strings, however many are alive. Node 22 does not have it.
  if (Number.parseInt(process.versions.node, 10) >= 24) setFlagsFromString("--external-memory-accounted-in-global-limit");
}
