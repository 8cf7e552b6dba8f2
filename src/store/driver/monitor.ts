import { DomainError } from "../../domain/errors.ts";
import type { Database } from "./database.ts";

const INTERVAL_MS = 1_000;

type MonitorOptions = {
  readonly onChange: (reachable: boolean, error?: unknown) => void;
  /** Called on each look that cannot reach the database. */
  readonly revive: () => Promise<void>;
  /** Called on each look that can. */
  readonly tend: () => Promise<void>;
  /** Told when one of the two fails. */
  readonly onFailure: (error: unknown) => void;
};

/** Checks once a second whether the database can be reached and written to, so that no call has to find out. */
export class DatabaseMonitor {
  readonly #database: Database;
  readonly #options: MonitorOptions;
  readonly #listeners = new Set<() => void>();
  #reachable = true;
  #timer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(database: Database, options: MonitorOptions) {
    this.#database = database;
    this.#options = options;
  }

  get reachable(): boolean {
    return this.#reachable;
  }

  start(): void {
    this.#timer = setTimeout(() => void this.#look(), INTERVAL_MS);
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

  async #look(): Promise<void> {
    const { revive, tend, onFailure } = this.#options;
    const isThere = await this.#ask();
    if (!this.#stopped) await (isThere ? tend() : revive()).catch(onFailure);
    if (!this.#stopped) this.start();
  }

  async #ask(): Promise<boolean> {
    try {
      await this.#database.call("schema_version");
      await this.#database.requireWritable();
      this.#set(true);
    } catch (error) {
      // Too many statements are a matter of this server; of the database they say nothing.
      if (error instanceof DomainError && error.reason === "overloaded") return this.#reachable;
      this.#set(false, error);
    }
    return this.#reachable;
  }

  #set(reachable: boolean, error?: unknown): void {
    if (this.#reachable === reachable) return;
    this.#reachable = reachable;
    this.#options.onChange(reachable, error);
    this.announce();
  }
}
