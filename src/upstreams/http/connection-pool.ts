import { createRequire } from "node:module";
import type { Pool } from "undici";
import { ANSWER_LIMITS } from "./response-limits.ts";

const require = createRequire(import.meta.url);

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

/**
 * How many connections there are is bounded by how many calls may run. One connection carries one call at a time. Undici
 * is loaded for the first of them: a server with none but the sandbox starts 0.06 s sooner.
 */
function createPool(origin: string): Pool {
  const undici = require("undici") as typeof import("undici");
  return new undici.Pool(origin, {
    connect: { timeout: ANSWER_LIMITS.connectMs },
    pipelining: 1,
    allowH2: false,
  });
}
