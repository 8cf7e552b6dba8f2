import { DomainError } from "../../domain/errors.ts";
import type { Cell } from "./cells.ts";
import type { DatabaseClock } from "./database-clock.ts";

const INTERVAL_MS = 1_000;

type MonitorOptions = {
  /** Is set by each check. */
  readonly clock: DatabaseClock;
  /** Called before each check: migrates a cell before its first use. */
  readonly prepare: () => Promise<void>;
  readonly onChange: (reachable: boolean, error?: unknown) => void;
  /** Called on each check that fails. */
  readonly revive: () => Promise<void>;
  /** Called on each check that succeeds. */
  readonly maintain: () => Promise<void>;
  /** Called when `revive` or `maintain` fails. */
  readonly onFailure: (error: unknown) => void;
};

/**
 * Checks every second whether the database can be reached and written to, so that calls can be refused at
 * once. The checks also measure its clock and its distance.
 */
export class DatabaseMonitor {
  readonly #cell: Cell;
  readonly #options: MonitorOptions;
  #reachable = true;
  #timer: NodeJS.Timeout | undefined;
  #searchTimer: NodeJS.Timeout | undefined;
  #stopped = false;

  constructor(cell: Cell, options: MonitorOptions) {
    this.#cell = cell;
    this.#options = options;
  }

  get reachable(): boolean {
    return this.#reachable;
  }

  /** Rejects unless the database accepts writes. */
  async probe(): Promise<void> {
    const { clock, prepare } = this.#options;
    const askedAt = clock.now();
    await this.#cell.requireWritable();
    clock.addRoundTrip(clock.now() - askedAt);
    await prepare();
    const sentAt = clock.now();
    const [row] = await this.#cell.call<{ clock: Date }>("probe_writes");
    if (row) clock.set(row.clock, sentAt);
  }

  start(): void {
    this.#timer = setTimeout(() => void this.#checkAndMaintain(), INTERVAL_MS);
    // Apart from the check, which waits while the primary is paused.
    this.#searchTimer ??= setInterval(() => void this.#cell.findNewerPrimary(), INTERVAL_MS);
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
    clearInterval(this.#searchTimer);
  }

  async #checkAndMaintain(): Promise<void> {
    const { revive, maintain } = this.#options;
    const isReachable = await this.#check();
    if (!this.#stopped) await (isReachable ? maintain() : revive()).catch((error: unknown) => this.#report(error));
    if (!this.#stopped) this.start();
  }

  async #check(): Promise<boolean> {
    try {
      await this.probe();
      this.#set(true);
    } catch (error) {
      // "overloaded" is a limit of this server and gives no information about the database.
      if (error instanceof DomainError && error.reason === "overloaded") return this.#reachable;
      this.#set(false, error);
    }
    return this.#reachable;
  }

  /** A stop closes the pools, which interrupts a check or maintenance that is running. */
  #report(error: unknown): void {
    if (!this.#stopped) this.#options.onFailure(error);
  }

  #set(reachable: boolean, error?: unknown): void {
    if (this.#stopped || this.#reachable === reachable) return;
    this.#reachable = reachable;
    this.#options.onChange(reachable, error);
  }
}
