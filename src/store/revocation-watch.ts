import type { Database } from "./driver/database.ts";

/** Ten looks a second: a stream of a revoked key is cut well within one, on a busy machine too. */
const LOOK_MS = 100;
/** A revocation is seen when it commits, which is after the time it bears. */
const MARGIN_SECONDS = 30;

type RevocationWatchOptions = {
  /** In milliseconds, never going back. */
  readonly now: () => number;
  /** Whether there is anything to cut; nobody asks the database otherwise. */
  readonly isNeeded: () => boolean;
  readonly onRevoked: (keyIds: ReadonlySet<string>) => void;
};

/**
 * Asks the database which keys were revoked a moment ago. New calls need no such watch: admission reads the key itself;
 * this is for streams that run already.
 */
export class RevocationWatch {
  readonly #database: Database;
  readonly #options: RevocationWatchOptions;
  /** When the last look began that succeeded. */
  #lookedAt: number;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(database: Database, options: RevocationWatchOptions) {
    this.#database = database;
    this.#options = options;
    this.#lookedAt = options.now();
  }

  start(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      // A look that failed is made up for by the next one, which goes back as far.
      void this.#look()
        .catch(() => undefined)
        .then(() => this.start());
    }, LOOK_MS);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  async #look(): Promise<void> {
    const { now, isNeeded, onRevoked } = this.#options;
    const startedAt = now();
    if (isNeeded()) {
      const seconds = Math.ceil((startedAt - this.#lookedAt) / 1_000) + MARGIN_SECONDS;
      type Row = { recently_revoked_keys: string };
      const rows = await this.#database.call<Row>("recently_revoked_keys", seconds);
      if (rows.length > 0) onRevoked(new Set(rows.map((row) => row.recently_revoked_keys)));
    }
    this.#lookedAt = startedAt;
  }
}
