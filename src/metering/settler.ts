import { DomainError } from "../domain/errors.ts";
import type { Billing, EndOutcome, EndRequest } from "../store/billing.ts";

/** A hold lives longer than any call and all tries to end it. */
const TRY_FOR_MS = 60_000;
/** By then a statement whose answer was lost has ended, one way or the other. */
const STATEMENT_GONE_MS = 10_000;
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 2_000;

type SettlerOptions = {
  readonly billing: Billing;
  /** In milliseconds, never going back. */
  readonly now: () => number;
  readonly wait: (ms: number) => Promise<unknown>;
  readonly onFailure: (end: EndRequest, error: unknown) => void;
};

/** Ends holds, again and again while the database is away: a charge is not lost because one statement was. */
export class Settler {
  readonly #options: SettlerOptions;

  constructor(options: SettlerOptions) {
    this.#options = options;
  }

  /** Ends a hold of which nobody knows whether it was placed, or still will be. */
  async abandon({ holdId, accountId }: Pick<EndRequest, "holdId" | "accountId">): Promise<void> {
    const end = { holdId, accountId, charge: undefined };
    if ((await this.end(end)).outcome !== "gone") return;
    await this.#options.wait(STATEMENT_GONE_MS);
    await this.end(end);
  }

  async end(end: EndRequest): Promise<EndOutcome> {
    const { billing, now, wait, onFailure } = this.#options;
    const until = now() + TRY_FOR_MS;
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
      try {
        return await billing.end(end);
      } catch (error) {
        if (now() + pauseMs > until || !isPassing(error)) {
          onFailure(end, error);
          throw error;
        }
      }
      await wait(pauseMs);
    }
  }
}

function isPassing(error: unknown): boolean {
  return error instanceof DomainError && (error.reason === "unavailable" || error.reason === "overloaded");
}
