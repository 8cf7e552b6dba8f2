import { isRefusedWrite, NotSent } from "../database/driver/store-error.ts";
import { DomainError } from "../domain/errors.ts";
import { assertInvariant, InvariantViolation } from "../domain/invariant.ts";
import type { EndOutcome, EndRequest } from "./bill.ts";
import type { Billing } from "./billing.ts";

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
/** How long a caller waits for a charge while the database refuses to write. */
const MAX_REFUSED_MS = 10_000;
/** After `limitRetries`, how long attempts may still be started. */
export const MAX_SETTLE_MS = 60_000;

type SettlerOptions = {
  readonly billing: Pick<Billing, "end">;
  /** Monotonic clock, in milliseconds. */
  readonly now: () => number;
  readonly wait: (ms: number) => Promise<unknown>;
  /** Called once per hold, when the first attempt fails. */
  readonly onRetry: (end: EndRequest, error: unknown) => void;
  /** Called when a hold is released instead of charged, because the database refused the charge. */
  readonly onRefusal: (end: EndRequest, error: unknown) => void;
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
  async abandon({ generationId, accountId }: Pick<EndRequest, "generationId" | "accountId">): Promise<void> {
    await this.end({ generationId, accountId, charge: undefined });
  }

  /**
   * @param giveUp returns an error to the caller, who pays nothing; undefined if output was delivered. It is called once
   * the database has refused the ending for ten seconds, and from then on the hold is released. It is never called after an
   * attempt whose outcome is unknown, because that attempt may have charged.
   */
  end(end: EndRequest, giveUp?: (error: unknown) => void): Promise<EndOutcome> {
    return this.#options.billing.end(end).catch((error: unknown) => this.#retry(end, error, giveUp));
  }

  async #retry(wanted: EndRequest, firstError: unknown, giveUp: ((error: unknown) => void) | undefined): Promise<EndOutcome> {
    const { billing, now, wait, onRetry, onRefusal, onFailure } = this.#options;
    const refusals = new Refusals(now);
    let end = wanted;
    let isGivenUp = false;
    let error = firstError;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      if (error instanceof InvariantViolation) throw error;
      if (giveUp && !isGivenUp && refusals.areTooMany(error)) {
        isGivenUp = true;
        giveUp(error);
        if (end.charge) onRefusal(end, error);
        end = { ...end, charge: undefined };
      }
      if (now() + pauseMs > this.#retryUntil) {
        // The caller got an error, so nothing is lost.
        if (!isGivenUp) onFailure(end, error);
        throw error;
      }
      if (pauseMs === FIRST_PAUSE_MS) onRetry(end, error);
      await wait(pauseMs);
      try {
        const ended = await billing.end(end);
        assertInvariant(!isGivenUp || ended.outcome !== "settled", "a refused charge is not made later", {
          hold: end.generationId,
          outcome: ended.outcome,
        });
        return ended;
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

/** The refused attempts to end a hold. */
class Refusals {
  readonly #now: () => number;
  #since: number | undefined;
  /** Whether an attempt may have succeeded, or may still succeed. */
  #isUncertain = false;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Records the error of an attempt; true if the attempts were refused for too long. */
  areTooMany(error: unknown): boolean {
    if (isRefusedWrite(error)) this.#since ??= this.#now();
    else if (!isUnsent(error)) this.#isUncertain = true;
    return !this.#isUncertain && this.#since !== undefined && this.#now() - this.#since >= MAX_REFUSED_MS;
  }
}

function isUnsent(error: unknown): boolean {
  return error instanceof NotSent || (error instanceof DomainError && error.reason === "overloaded");
}
