import type { Database } from "./database.ts";

const INTERVAL_MS = 1_000;

/** Asks the database once a second whether it is there, so that nobody has to wait for the answer. */
export class DatabaseMonitor {
  readonly #database: Database;
  readonly #onChange: (reachable: boolean, error?: unknown) => void;
  readonly #listeners = new Set<() => void>();
  #reachable = true;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(database: Database, onChange: (reachable: boolean, error?: unknown) => void) {
    this.#database = database;
    this.#onChange = onChange;
  }

  get reachable(): boolean {
    return this.#reachable;
  }

  /** Looks every second; revive is called each time the database cannot be reached. */
  start(revive: () => Promise<void>): void {
    this.#timer = setTimeout(() => void this.#look(revive), INTERVAL_MS);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** Tells of every change until the returned function is called. */
  watch(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Tells the listeners to look again: something else they go by has changed. */
  announce(): void {
    for (const listener of this.#listeners) listener();
  }

  async #look(revive: () => Promise<void>): Promise<void> {
    try {
      await this.#database.call("schema_version");
      this.#set(true);
    } catch (error) {
      this.#set(false, error);
      if (!this.#stopped) await revive().catch((failure: unknown) => this.#onChange(false, failure));
    }
    if (!this.#stopped) this.start(revive);
  }

  #set(reachable: boolean, error?: unknown): void {
    if (this.#reachable === reachable) return;
    this.#reachable = reachable;
    this.#onChange(reachable, error);
    this.announce();
  }
}
