import type { Session, SessionOptions, Sql } from "./connection.ts";
import type { DatabaseAddress } from "./endpoints.ts";
import { Hosts } from "./hosts.ts";

export type { Sql } from "./connection.ts";
export type { DatabaseAddress } from "./endpoints.ts";

/**
 * Number of comparisons of two connections. Both, and other clients of the pooler, return their backends in random order, so each
 * comparison finds a change of backends with a probability of about one half.
 */
const POOLER_ROUNDS = 20;

/** A pooler that assigns a backend per transaction loses session settings. */
export class TransactionPoolingError extends Error {
  constructor() {
    super(
      "the pooler in front of the database is in transaction or statement mode, which does not keep the settings of a session: " +
        "set pool_mode = session for this database, or connect to PostgreSQL itself",
    );
  }
}

/** One connection for work at startup; a lost connection is not reopened. */
export async function connect(address: DatabaseAddress, options: SessionOptions): Promise<Sql> {
  const hosts = new Hosts(address);
  const open = () => hosts.open(options);
  const session = await open();
  try {
    if (session.isPooled) await requireSessionPooling(session, open);
    return session.sql;
  } catch (error) {
    await session.close();
    throw error;
  }
}

/**
 * Throws if two open connections share a backend, or if the backend of one changes: then the pooler does not
 * assign backends to connections for the whole session.
 */
async function requireSessionPooling(session: Session, open: () => Promise<Session>): Promise<void> {
  const other = await open();
  try {
    const first = await session.backendPid();
    for (let round = 0; round < POOLER_ROUNDS; round++) {
      const pids = await Promise.all([other.backendPid(), session.backendPid()]);
      if (pids[0] === first || pids[1] !== first) throw new TransactionPoolingError();
    }
  } finally {
    await other.close();
  }
}
