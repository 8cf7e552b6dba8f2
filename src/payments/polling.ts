import { setTimeout as sleep } from "node:timers/promises";
import type { Cells } from "../database/driver/cells.ts";
import type { TopUps } from "./top-ups.ts";

const PAUSE_MS = 2_000;
/** Undelivered events are listed in every 150th round: each five minutes. */
const ROUNDS = 150;

type Options = {
  readonly topUps: TopUps;
  readonly database: Cells;
  readonly onFailure: (error: unknown) => void;
};

/** Finds payments whose events did not arrive. Runs in one process of a server; several servers share the work. */
export class Polling {
  readonly #options: Options;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  /** The rounds that run, by cell: a cell that does not answer delays no other. */
  readonly #rounds = new Map<Cells["all"][number], Promise<void>>();

  constructor(options: Options) {
    this.#options = options;
  }

  start(): void {
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { topUps, database, onFailure } = this.#options;
    const { signal } = this.#stop;
    for (let round = 1; ; round++) {
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) break;
      for (const cell of database.all) {
        if (this.#rounds.has(cell)) continue;
        this.#rounds.set(
          cell,
          this.#poll(cell).finally(() => this.#rounds.delete(cell)),
        );
      }
      if (round % ROUNDS === 0) await topUps.catchUp().catch(onFailure);
    }
    await Promise.all(this.#rounds.values());
  }

  async #poll(cell: Cells["all"][number]): Promise<void> {
    const { topUps, onFailure } = this.#options;
    await topUps.poll(cell).catch(onFailure);
    await topUps.automatic.poll(cell).catch(onFailure);
  }
}
