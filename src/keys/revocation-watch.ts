import * as sql from "../../gen/sql/calls.ts";
import type { FunctionCaller } from "../database/driver/cells.ts";

/** Ten queries per second: the streams of a key are cut within a second, even on a busy machine. */
const POLL_MS = 100;
/** A withdrawal becomes visible at its commit, which is later than its timestamp. */
const MARGIN_SECONDS = 30;

/** Why keys may no longer generate, by their ids. */
export type WithdrawnKeys = ReadonlyMap<string, WithdrawalReason>;
type WithdrawalReason = sql.WithdrawnKeysRow["reason"];

type RevocationWatchOptions = {
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** Whether any stream could be cut; otherwise the database is not queried. */
  readonly isNeeded: () => boolean;
  readonly onWithdrawn: (reasons: WithdrawnKeys) => void;
};

/**
 * Polls a cell for keys that were revoked, lost the scope of generations, or are of a suspended account, to cut their running streams. New
 * calls do not need it: admission reads the key.
 */
export class RevocationWatch {
  readonly #cell: FunctionCaller;
  readonly #options: RevocationWatchOptions;
  /** Start of the last successful query. */
  #polledAt: number;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(cell: FunctionCaller, options: RevocationWatchOptions) {
    this.#cell = cell;
    this.#options = options;
    this.#polledAt = options.now();
  }

  start(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      // After a failed query the next one covers its time range too.
      void this.#poll()
        .catch(() => undefined)
        .then(() => this.start());
    }, POLL_MS);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #poll(): Promise<void> {
    const { now, isNeeded, onWithdrawn } = this.#options;
    const startedAt = now();
    if (isNeeded()) {
      const seconds = Math.ceil((startedAt - this.#polledAt) / 1_000) + MARGIN_SECONDS;
      const rows = await sql.withdrawnKeys(this.#cell, { seconds });
      if (rows.length > 0) onWithdrawn(new Map(rows.map((row) => [row.key_id, row.reason])));
    }
    this.#polledAt = startedAt;
  }
}
