import { setTimeout as wait } from "node:timers/promises";
import { mayPass } from "../database/driver/store-error.ts";
import { DomainError } from "../domain/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Config } from "./settings/config.ts";
import { StartError } from "./start-error.ts";

/** The pause between two attempts, and between two log lines. */
const PAUSE_MS = 1_000;

type DatabaseWaitOptions = {
  readonly config: Config;
  readonly log: Log;
  readonly stopSignal: AbortSignal;
  /** Answers probes from the first failure on. Resolves to a function that stops this. */
  readonly openProbes: () => Promise<() => Promise<void>>;
};

/** A signal ended the wait for the database. */
export class StartInterrupted extends Error {}

/** Rejects with StartInterrupted as soon as the server should stop. Needs no handler. */
export function interruption(stopSignal: AbortSignal): Promise<never> {
  const interrupted = new Promise<never>((_, reject) => {
    const stop = () => reject(new StartInterrupted());
    if (stopSignal.aborted) stop();
    else stopSignal.addEventListener("abort", stop, { once: true });
  });
  interrupted.catch(() => undefined);
  return interrupted;
}

/** At start, repeats what needs the database until it works, for at most VX_DATABASE_WAIT in total. */
export class DatabaseWait {
  readonly #options: DatabaseWaitOptions;
  readonly #interrupted: Promise<never>;
  /** Set by the first failure. */
  #endMs: number | undefined;
  #closeProbes: (() => Promise<void>) | undefined;

  constructor(options: DatabaseWaitOptions) {
    this.#options = options;
    this.#interrupted = interruption(options.stopSignal);
  }

  /** Fails at once if waiting cannot help, for example with a wrong password. */
  async until<Result>(attempt: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await Promise.race([attempt(), this.#interrupted]);
      } catch (error) {
        this.#endMs ??= performance.now() + this.#options.config.databaseWaitMs;
        const leftMs = this.#endMs - performance.now();
        if (!mayPass(error) || leftMs <= 0) throw toStartError(error);
        await this.#pause(error, leftMs);
      }
    }
  }

  /** Call this before the listeners open on the same ports. */
  async end(): Promise<void> {
    await this.#closeProbes?.();
    this.#closeProbes = undefined;
  }

  async #pause(error: unknown, leftMs: number): Promise<void> {
    const { log, openProbes } = this.#options;
    this.#closeProbes ??= await openProbes();
    log.warn({ problem: messageOf(error), left_s: Math.ceil(leftMs / 1_000) }, "waiting for the database");
    await Promise.race([wait(Math.min(PAUSE_MS, leftMs)), this.#interrupted]);
  }
}

function messageOf(error: unknown): string {
  const { message, cause } = error as Error;
  return error instanceof DomainError && cause instanceof Error ? cause.message : message;
}

/** A DomainError has a text for callers; the operator needs its cause. */
function toStartError(error: unknown): unknown {
  if (!(error instanceof DomainError)) return error;
  return new StartError(`the database cannot be used: ${messageOf(error)}`, { cause: error });
}
