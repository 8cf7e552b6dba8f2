import type { DatabaseAddress } from "./endpoints.ts";
import { type Session, SessionOpener, type SessionOptions, type Sql } from "./session.ts";

export type { DatabaseAddress } from "./endpoints.ts";
export type { Sql } from "./session.ts";

/** How often two connections are compared: others may use the same pooler at the same time. */
const POOLER_ROUNDS = 5;

/** A pooler gives one backend to several connections in turn, which loses what a session has set. */
export class TransactionPoolingError extends Error {
  constructor() {
    super(
      "the pooler in front of the database is in transaction or statement mode, which does not keep the settings of a session: " +
        "set pool_mode = session for this database, or connect to PostgreSQL itself",
    );
  }
}

/** One connection for work at the start; it is not opened again when it is lost. */
export async function connect(address: DatabaseAddress, options: SessionOptions): Promise<Sql> {
  const opener = new SessionOpener(address, options);
  const session = await opener.open();
  try {
    if (session.isPooled) await requireSessionPooling(session, opener);
    return session.sql;
  } catch (error) {
    await session.close();
    throw error;
  }
}

/**
 * Two connections that are open at the same time have the same backend, or one of them has another than before: then
 * backends do not belong to connections.
 */
async function requireSessionPooling(session: Session, opener: SessionOpener): Promise<void> {
  const other = await opener.open();
  try {
    const first = await session.backendPid();
    for (let round = 0; round < POOLER_ROUNDS; round++) {
      const pids = [await other.backendPid(), await session.backendPid()];
      if (pids[0] === first || pids[1] !== first) throw new TransactionPoolingError();
    }
  } finally {
    await other.close();
  }
}
