import { InvariantViolation } from "../domain/invariant.ts";
import type { EndOutcome, EndRequest } from "../store/bill-item.ts";
import type { Billing } from "../store/billing.ts";

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
/** After `limitRetries`, how long attempts may still be started. */
export const MAX_SETTLE_MS = 60_000;

type SettlerOptions = {
  readonly billing: Pick<Billing, "end">;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly wait: (ms: number) => Promise<unknown>;
  /** Called once per hold, when the first attempt fails. */
  readonly onRetry: (end: EndRequest, error: unknown) => void;
  /** Called when no attempt succeeded before the limit that `limitRetries` sets. */
  readonly onFailure: (end: EndRequest, error: unknown) => void;
};

/**
 * Ends holds. Ending a hold is idempotent, so any error is retried until the database reports that the hold
 * is settled or missing: temporary failures must not lose a charge. Only a violated invariant is not retried.
 */
export class Settler {
  readonly #options: SettlerOptions;
  #retryUntil = Number.POSITIVE_INFINITY;

  constructor(options: SettlerOptions) {
    this.#options = options;
  }

  /** Releases a hold that may not have been placed. If it is placed later, a heartbeat releases it. */
  async abandon({ holdId, accountId }: Pick<EndRequest, "holdId" | "accountId">): Promise<void> {
    await this.end({ holdId, accountId, charge: undefined });
  }

  end(end: EndRequest): Promise<EndOutcome> {
    return this.#options.billing.end(end).catch((error: unknown) => this.#retry(end, error));
  }

  async #retry(end: EndRequest, firstError: unknown): Promise<EndOutcome> {
    const { billing, now, wait, onRetry, onFailure } = this.#options;
    let error = firstError;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      if (error instanceof InvariantViolation) throw error;
      if (now() + pauseMs > this.#retryUntil) {
        onFailure(end, error);
        throw error;
      }
      if (pauseMs === FIRST_PAUSE_MS) onRetry(end, error);
      await wait(pauseMs);
      try {
        return await billing.end(end);
      } catch (other) {
        error = other;
      }
    }
  }

  /** Limits the time for all attempts, because the process is about to exit. */
  limitRetries(): void {
    this.#retryUntil = this.#options.now() + MAX_SETTLE_MS;
  }
}
