import { setTimeout as sleep } from "node:timers/promises";
import type { Cells } from "../store/driver/cells.ts";
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
    for (let round = 1; !signal.aborted; round++) {
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
      if (signal.aborted) return;
      for (const cell of database.all) {
        await topUps.poll(cell).catch(onFailure);
        await topUps.automatic.poll(cell).catch(onFailure);
      }
      if (round % ROUNDS === 0) await topUps.catchUp().catch(onFailure);
    }
  }
}
