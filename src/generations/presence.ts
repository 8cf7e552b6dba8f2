import { setTimeout as wait } from "node:timers/promises";
import * as sql from "../../gen/sql/calls.ts";
import type { FunctionCaller } from "../database/driver/cells.ts";
import type { DatabaseClock } from "../database/driver/database-clock.ts";
import { LANE_COUNT } from "../domain/lane.ts";
import type { EndOutcome } from "./bill-statement.ts";

/** Lanes per round. With a round every two seconds, all lanes are checked within about half a minute. */
const LANES_PER_ROUND = 64;
/** One statement deletes a limited number of expired responses, so a busy lane needs several per round. */
const MAX_SWEEPS_PER_ROUND = 16;

type PresenceOptions = {
  readonly serverId: string;
  readonly clock: DatabaseClock;
  /** The pause after a heartbeat, and after a round of releases. */
  readonly pauseMs: number;
  /** A pool without slow statements, because a server with late heartbeats loses its holds. */
  readonly heartbeats: FunctionCaller;
  /** The names of the cells that this server would use if they owned lanes; none with one cell. */
  readonly cells: () => readonly string[];
  /** Whether this process will end the hold. */
  readonly isOpen: (generationId: string) => boolean;
  /** Releases a hold of this server. */
  readonly release: (hold: { readonly generationId: string; readonly accountId: string }) => Promise<EndOutcome>;
  readonly onReleased: (holds: number) => void;
  readonly onFailure: (what: "heartbeat" | "release of abandoned holds", error: unknown) => void;
};

/**
 * Sends heartbeats to one cell and releases abandoned holds there: those of servers without a heartbeat, expired ones, and
 * those of this server that it does not track because their statement ran after its timeout. Heartbeats do
 * not wait for releases, which may wait for locks.
 */
export class Presence {
  readonly #cell: FunctionCaller;
  readonly #options: PresenceOptions;
  readonly #stopped = new AbortController();
  #loops: Promise<unknown> = Promise.resolve();
  /** The first lane of the next round. */
  #firstLane = 0;

  constructor(cell: FunctionCaller, options: PresenceOptions) {
    this.#cell = cell;
    this.#options = options;
  }

  /**
   * Resolves when the server is registered, and rejects if the first heartbeat fails; the next ones follow in both cases. Holds
   * of an unregistered server count as abandoned.
   */
  async start(): Promise<void> {
    const { onFailure } = this.#options;
    try {
      await this.#heartbeat();
    } finally {
      this.#loops = Promise.all([
        this.#repeat(() => this.#heartbeat().catch((error) => onFailure("heartbeat", error))),
        this.#repeat(() => this.releaseAbandoned().catch((error) => onFailure("release of abandoned holds", error))),
      ]);
    }
  }

  async stop(): Promise<void> {
    const { serverId, heartbeats, onFailure } = this.#options;
    this.#stopped.abort();
    await this.#loops;
    // If this fails, the other servers detect the missing heartbeat.
    await sql.removeServers(heartbeats, { serverId }).catch((error) => onFailure("heartbeat", error));
  }

  async #repeat(work: () => Promise<void>): Promise<void> {
    const { signal } = this.#stopped;
    for (;;) {
      await wait(this.#options.pauseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      await work();
    }
  }

  async #heartbeat(): Promise<void> {
    const { serverId, clock, heartbeats, cells } = this.#options;
    const sentAt = clock.now();
    const [row] = await sql.heartbeat(heartbeats, { serverId, cells: JSON.stringify(cells()) });
    if (row) clock.set(row.clock, sentAt);
  }

  /** One round: all abandoned holds of other servers, and this server's in the next part of the lanes. */
  async releaseAbandoned(): Promise<void> {
    const first = this.#firstLane;
    const last = first + LANES_PER_ROUND - 1;
    this.#firstLane = (last + 1) % LANE_COUNT;
    await this.#sweep(first, last);
    await this.#releaseUnknown(first, last);
  }

  async #sweep(first: number, last: number): Promise<void> {
    for (let sweeps = 0; sweeps < MAX_SWEEPS_PER_ROUND; sweeps++) {
      const lanes = await sql.lanesToSweep(this.#cell, { from: first, to: last });
      if (lanes.length === 0) return;
      for (const lane of lanes) {
        if (this.#stopped.signal.aborted) return;
        const released = await sql.sweep(this.#cell, { lane });
        if (released > 0n) this.#options.onReleased(Number(released));
      }
    }
  }

  async #releaseUnknown(first: number, last: number): Promise<void> {
    const { serverId, isOpen, release, onReleased } = this.#options;
    const rows = await sql.ownHolds(this.#cell, { serverId, from: first, to: last });
    const unknown = rows.filter(({ id }) => !isOpen(id));
    const ended = await Promise.all(unknown.map(({ id, account_id }) => release({ generationId: id, accountId: account_id })));
    // The other holds were ended while their rows were in transit.
    const released = ended.filter(({ outcome }) => outcome === "released").length;
    if (released > 0) onReleased(released);
  }
}

/** For a server with exclusive use of the database: the holds of all earlier servers become abandoned. */
export async function removeServers(cell: FunctionCaller): Promise<void> {
  await sql.removeServers(cell, { serverId: null });
}
