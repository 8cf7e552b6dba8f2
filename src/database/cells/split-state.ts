import type { Lane } from "../../domain/lane.ts";
import { Session, type Sql } from "../driver/connection.ts";
import { type DatabaseAddress, endpointsOf } from "../driver/endpoints.ts";

/** A split cannot begin or continue. The message is for the operator. */
export class SplitError extends Error {}

export type Split = {
  readonly id: string;
  readonly target: string;
  readonly lanes: readonly Lane[];
  readonly state: "begun" | "released" | "confirmed" | "finished" | "returned";
  readonly changedAt: Date;
};

const STATEMENT_TIMEOUT_MS = 60_000;

/** Connects to the only server of an address, which may be a standby. */
export async function openServer(address: DatabaseAddress): Promise<Session> {
  const [endpoint] = endpointsOf(address);
  if (!endpoint) throw new Error("the address names no server");
  return await Session.connect(endpoint, {
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    name: "vx cells split",
  });
}

/** Without this privilege, a login sees no standby of the source and no source of the standby. */
export async function requireMonitoring(sql: Sql, place: string): Promise<void> {
  const [row] = await sql<{ login: string }[]>`
    SELECT quote_ident(current_user) AS login WHERE NOT pg_has_role('pg_read_all_stats', 'USAGE')`;
  if (!row) return;
  throw new SplitError(
    `the login ${row.login} of ${place} may not read the state of the replication; as a superuser of the source, run: GRANT pg_monitor TO ${row.login}`,
  );
}

/** The split of this id; without one, that which is not finished, or else the last one. */
export async function readSplit(sql: Sql, schema: string, id: string | null): Promise<Split | undefined> {
  const [row] = await sql<{ id: string; target: string; lanes: string; state: Split["state"]; changed_at: Date }[]>`
    SELECT id, target, array_to_string(lanes, ',') AS lanes, state, changed_at FROM ${sql(schema)}.cell_splits
    WHERE id = coalesce(${id}, id)
    ORDER BY state IN ('finished', 'returned'), changed_at DESC LIMIT 1`;
  return row && { ...row, lanes: row.lanes.split(",").map(Number), changedAt: row.changed_at };
}
