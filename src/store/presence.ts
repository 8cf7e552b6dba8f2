import { LANE_COUNT } from "../domain/lane.ts";
import type { Database } from "./database.ts";
import type { DatabaseClock } from "./database-clock.ts";

const BEAT_MS = 2_000;
/** Lanes looked through with each heartbeat; all of them within half a minute. */
const LANES_PER_BEAT = 64;

export type OwnHold = { readonly holdId: string; readonly accountId: string };

type PresenceOptions = {
  readonly serverId: string;
  readonly clock: DatabaseClock;
  /** Whether this process will end the hold. */
  readonly isOpen: (holdId: string) => boolean;
  /** Releases a hold of this server. */
  readonly release: (hold: OwnHold) => Promise<unknown>;
  readonly onReleased: (holds: number) => void;
  readonly onFailure: (error: unknown) => void;
};

/**
 * Sends heartbeats, and releases abandoned holds: those of servers without a heartbeat, expired ones, and those of this
 * server that it does not know, because a statement was executed after the server had given it up.
 */
export class Presence {
  readonly #database: Database;
  readonly #options: PresenceOptions;
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> = Promise.resolve();
  #stopped = false;
  /** Where the next heartbeat goes on. */
  #firstLane = 0;

  constructor(database: Database, options: PresenceOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** Resolves when the server is registered. Holds of an unregistered server count as abandoned. */
  async start(): Promise<void> {
    await this.#beat();
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#beating;
    // Without a database, the other servers notice the missing heartbeat.
    await this.#database.call("leave", this.#options.serverId).catch(this.#options.onFailure);
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#beating = this.round().catch(this.#options.onFailure);
      void this.#beating.then(() => this.#schedule());
    }, BEAT_MS);
  }

  async #beat(): Promise<void> {
    const [row] = await this.#database.call<{ clock: Date }>("beat", this.#options.serverId);
    if (row) this.#options.clock.set(row.clock);
  }

  /** One heartbeat, with the work that goes along with it. */
  async round(): Promise<void> {
    await this.#beat();
    const first = this.#firstLane;
    const last = first + LANES_PER_BEAT - 1;
    this.#firstLane = (last + 1) % LANE_COUNT;
    await this.#sweep(first, last);
    await this.#releaseUnknown(first, last);
  }

  async #sweep(first: number, last: number): Promise<void> {
    const rows = await this.#database.call<{ lanes_to_sweep: number }>("lanes_to_sweep", first, last);
    for (const { lanes_to_sweep: lane } of rows) {
      const [row] = await this.#database.call<{ sweep: bigint }>("sweep", lane);
      if (row && row.sweep > 0n) this.#options.onReleased(Number(row.sweep));
      // Sweeping may take long, and the heartbeats must go on.
      await this.#beat();
    }
  }

  async #releaseUnknown(first: number, last: number): Promise<void> {
    const { serverId, isOpen, release, onReleased } = this.#options;
    type Row = { readonly id: string; readonly account_id: string };
    const rows = await this.#database.call<Row>("own_holds", serverId, first, last);
    const unknown = rows.filter(({ id }) => !isOpen(id));
    await Promise.all(unknown.map(({ id, account_id }) => release({ holdId: id, accountId: account_id })));
    if (unknown.length > 0) onReleased(unknown.length);
  }
}

/** For a server that has the database to itself: the holds of all earlier servers become abandoned. */
export async function forgetServers(database: Database): Promise<void> {
  await database.call("forget_servers");
}
