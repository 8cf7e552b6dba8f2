import { Pool } from "undici";
import { ANSWER_LIMITS } from "./limits.ts";

type Shared = { readonly pool: Pool; users: number };

/** One pool of connections per server, shared by all upstreams there and kept as long as one of them is open. */
export class Connections {
  readonly #pools = new Map<string, Shared>();

  get size(): number {
    return this.#pools.size;
  }

  open(origin: string): Pool {
    const shared = this.#pools.get(origin) ?? { pool: createPool(origin), users: 0 };
    this.#pools.set(origin, shared);
    shared.users++;
    return shared.pool;
  }

  /** The last one who lets go closes the pool, which waits for the responses that are still coming. */
  async close(origin: string): Promise<void> {
    const shared = this.#pools.get(origin);
    if (!shared || --shared.users > 0) return;
    this.#pools.delete(origin);
    await shared.pool.close();
  }
}

/** How many connections there are is bounded by how many calls may run. One connection carries one call at a time. */
function createPool(origin: string): Pool {
  return new Pool(origin, { connect: { timeout: ANSWER_LIMITS.connectMs }, pipelining: 1, allowH2: false });
}
