import { setTimeout as wait } from "node:timers/promises";
import { type PrimaryServer, type Standby, startStandby } from "../../support/standby.ts";
import type { Arena } from "../arena.ts";
import { socketPathOf } from "../database.ts";
import { Line } from "../line.ts";

const READY_MS = 20_000;
/** Commits wait for no other standby, such as one that becomes a cell. */
const NAME = "spare";

export type ReplicationMode = {
  readonly isSynchronous: boolean;
  /** Delay of the write-ahead log on its way to the standby. */
  readonly lagMs: number;
};

/** The primary and the standby of an arena, on two hosts that change their roles at each failover. */
export class Replication {
  readonly #arena: Arena;
  readonly #mode: ReplicationMode;
  #standby: Standby | undefined;
  #wire: Line | undefined;
  /** Servers that were started here and are no longer part of the replication. */
  readonly #retired: Standby[] = [];
  /** The addresses of the two hosts, as each server knows them. */
  #hosts: { readonly primary: readonly Line[]; readonly standby: readonly Line[] };

  constructor(arena: Arena, mode: ReplicationMode) {
    this.#arena = arena;
    this.#mode = mode;
    this.#hosts = { primary: arena.databaseLines, standby: arena.standbyLines };
  }

  /** Copies the primary to the other host, as an operator does after a failover. */
  async attachStandby(): Promise<void> {
    const { database } = this.#arena;
    const { isSynchronous, lagMs } = this.#mode;
    this.#wire = await Line.start({ path: database.socketPath });
    const address = `host=127.0.0.1 port=${this.#wire.port} application_name=${NAME}`;
    this.#standby = await startStandby(database.primary, database.owner, address);
    // The copy is made without the delay.
    this.#wire.set({ latencyMs: lagMs });
    for (const line of this.#hosts.standby) line.retarget({ path: this.#standby.socketPath });
    if (isSynchronous) await this.#waitForEveryCommit();
  }

  /** The standby receives no more, and what is on its way is lost. */
  async disconnect(): Promise<void> {
    await this.#wire?.stop();
    this.#wire = undefined;
  }

  /** Promotes the standby. Returns the old primary, which may still run. */
  async promote(): Promise<PrimaryServer> {
    const { database } = this.#arena;
    const old = database.primary;
    const standby = this.#standby;
    if (!standby) throw new Error("there is no standby");
    await standby.promote();
    database.moveTo(standby);
    this.#retired.push(standby);
    this.#standby = undefined;
    const { primary, standby: other } = this.#hosts;
    for (const line of primary) line.retarget({ path: socketPathOf(old) });
    this.#hosts = { primary: other, standby: primary };
    return old;
  }

  async stop(): Promise<void> {
    await this.disconnect();
    for (const server of [...this.#retired, ...(this.#standby ? [this.#standby] : [])]) await server.stop();
  }

  /** Each commit waits from now on until the standby has written it to disk. */
  async #waitForEveryCommit(): Promise<void> {
    const { owner } = this.#arena.database;
    await owner.unsafe(`ALTER SYSTEM SET synchronous_standby_names = '${NAME}'`);
    await owner`SELECT pg_reload_conf()`;
    const until = performance.now() + READY_MS;
    for (;;) {
      const rows = await owner`SELECT FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'`;
      if (rows.length === 1) return;
      if (performance.now() > until) throw new Error("the standby does not become synchronous");
      await wait(50);
    }
  }
}
