import { setTimeout as wait } from "node:timers/promises";
import { DomainError } from "../domain/errors.ts";
import { MAX_SETTLE_MS } from "../generations/billing.ts";
import type { Readiness } from "../server/connect/health.ts";
import type { Listener } from "../server/http/listener.ts";
import type { DatabaseHealth } from "./database-health.ts";

/** How long running calls may continue after the drain begins. */
const DRAIN_MS = 30_000;
/**
 * Time for the last statements, the last heartbeat and closing connections when the database does not
 * respond.
 */
const CLOSE_MS = 30_000;
/** The longest stop, without its delay. A process killed earlier cannot log the charges it did not settle. */
export const STOP_MS = DRAIN_MS + MAX_SETTLE_MS + CLOSE_MS;

/**
 * Controls whether calls are accepted. A drain refuses new calls, waits for running ones and stops those that
 * do not finish in time.
 */
export class Drain {
  readonly #health: DatabaseHealth;
  readonly #started = new AbortController();
  readonly #ended = new AbortController();
  #isStopping = false;

  constructor(health: DatabaseHealth) {
    this.#health = health;
  }

  /** False as soon as a stop is requested, although calls are still accepted during the delay. */
  get readiness(): Readiness {
    return {
      isReady: () => this.#health.isUp && !this.#isStopping,
      failedCells: () => this.#health.failedCells,
      watch: (listener) => this.#health.watch(listener),
    };
  }

  get startSignal(): AbortSignal {
    return this.#started.signal;
  }

  get endSignal(): AbortSignal {
    return this.#ended.signal;
  }

  /**
   * Resolves when all calls have ended and `settle` has settled their generations. If `isGraceful`, callers get time to stop
   * using their open connections.
   */
  async endCalls(
    listeners: readonly Listener[],
    settle: () => Promise<void>,
    delayMs: number,
    isGraceful = false,
  ): Promise<void> {
    this.#isStopping = true;
    this.#health.announce();
    if (delayMs > 0) {
      // A connection that the drain closes while the caller sends a request on it would lose the request.
      for (const listener of listeners) listener.prepareClose();
      await wait(delayMs);
    }
    this.#started.abort(shutdownReason());
    const abortCalls = () => this.#ended.abort(shutdownReason());
    // A generation that continues without its caller is not counted as a running call by a listener.
    const timer = setTimeout(abortCalls, DRAIN_MS);
    await Promise.all(listeners.map((listener) => listener.close(DRAIN_MS, abortCalls, isGraceful)));
    await settle();
    clearTimeout(timer);
  }
}

/** The error of calls that do not finish within the drain. */
export function shutdownReason(): DomainError {
  return new DomainError("unavailable", { message: "The server is shutting down. Try again at once." });
}
