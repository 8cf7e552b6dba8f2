import type { Database } from "./database.ts";

/** Four looks a second: a stream of a revoked key is cut well within one. */
const LOOK_MS = 250;

export type RevocationWatchOptions = {
  /** Whether there is anything to cut; nobody asks the database otherwise. */
  readonly isNeeded: () => boolean;
  readonly onRevoked: (keyId: string) => void;
};

/**
 * Asks the database which keys were revoked a moment ago. New calls need no such watch: admission reads the key itself;
 * this is for streams that run already.
 */
export class RevocationWatch {
  readonly #database: Database;
  readonly #options: RevocationWatchOptions;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(database: Database, options: RevocationWatchOptions) {
    this.#database = database;
    this.#options = options;
  }

  start(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      // While the database is away no key can be revoked either.
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
    if (!this.#options.isNeeded()) return;
    for (const row of await this.#database.call<{ recently_revoked_keys: string }>("recently_revoked_keys")) {
      this.#options.onRevoked(row.recently_revoked_keys);
    }
  }
}
