import type { Database } from "./database.ts";

const BEAT_MS = 2_000;

type PresenceOptions = {
  readonly serverId: string;
  readonly onSwept: (holds: number) => void;
  readonly onFailure: (error: unknown) => void;
};

/** Tells the database that this server is there, and gives back what servers that are not there any more held. */
export class Presence {
  readonly #database: Database;
  readonly #options: PresenceOptions;
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> = Promise.resolve();
  #stopped = false;
  /** Every beat also looks through one lane for answers that are too old. */
  #lane = 0;

  constructor(database: Database, options: PresenceOptions) {
    this.#database = database;
    this.#options = options;
  }

  /** Resolves when the database knows the server: before that nothing it held would stay. */
  async start(): Promise<void> {
    await this.#database.call("beat", this.#options.serverId);
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#beating;
    // While the database is away nobody can be told: others will notice.
    await this.#database.call("leave", this.#options.serverId).catch(this.#options.onFailure);
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#beating = this.#beat().catch(this.#options.onFailure);
      void this.#beating.then(() => this.#schedule());
    }, BEAT_MS);
  }

  async #beat(): Promise<void> {
    await this.#database.call("beat", this.#options.serverId);
    const lanes = await this.#database.call<{ lanes_to_sweep: number }>("lanes_to_sweep");
    const due = new Set([this.#lane, ...lanes.map((row) => row.lanes_to_sweep)]);
    this.#lane = (this.#lane + 1) % 64;
    for (const lane of due) {
      const [row] = await this.#database.call<{ sweep: bigint }>("sweep", lane);
      if (row && row.sweep > 0n) this.#options.onSwept(Number(row.sweep));
      // However long this takes, nobody may believe that this server is gone.
      await this.#database.call("beat", this.#options.serverId);
    }
  }
}

/** For the one server that knows that no other can be there: what others held is given back at once. */
export async function forgetServers(database: Database): Promise<void> {
  await database.call("forget_servers");
}
