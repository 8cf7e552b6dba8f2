import type { Billing, EndOutcome, EndRequest } from "../store/billing.ts";

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;
/** How long a server that stops starts new attempts. */
export const MAX_SETTLE_MS = 60_000;

type SettlerOptions = {
  readonly billing: Pick<Billing, "end">;
  /** In milliseconds, never going back. */
  readonly now: () => number;
  readonly wait: (ms: number) => Promise<unknown>;
  /** Called once per hold, when its first attempt failed. */
  readonly onRetry: (end: EndRequest, error: unknown) => void;
  /** Called when a server that stops has given up. */
  readonly onFailure: (end: EndRequest, error: unknown) => void;
};

/**
 * Ends holds. Ending a hold is idempotent, so every error is retried, whatever it is, until the database says that the
 * hold is settled or gone: a charge must not be lost because statements fail for a while.
 */
export class Settler {
  readonly #options: SettlerOptions;
  #until = Number.POSITIVE_INFINITY;

  constructor(options: SettlerOptions) {
    this.#options = options;
  }

  /** Ends a hold that may or may not have been placed. One that appears later is released with a heartbeat. */
  async abandon({ holdId, accountId }: Pick<EndRequest, "holdId" | "accountId">): Promise<void> {
    await this.end({ holdId, accountId, charge: undefined });
  }

  async end(end: EndRequest): Promise<EndOutcome> {
    const { billing, now, wait, onRetry, onFailure } = this.#options;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS)) {
      try {
        return await billing.end(end);
      } catch (error) {
        if (now() + pauseMs > this.#until) {
          onFailure(end, error);
          throw error;
        }
        if (pauseMs === FIRST_PAUSE_MS) onRetry(end, error);
      }
      await wait(pauseMs);
    }
  }

  /** Limits the time of all attempts: the process is about to end. */
  close(): void {
    this.#until = this.#options.now() + MAX_SETTLE_MS;
  }
}
