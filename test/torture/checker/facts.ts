import type postgres from "postgres";
import type { Lane } from "../../../src/domain/lane.ts";
import type { Entry } from "../history.ts";
import type { PriceSet } from "../prices.ts";
import type { Tenants } from "../tenants.ts";
import type { Execution } from "../upstream.ts";

/** A ledger row, read directly from the table. */
export type Row = {
  readonly id: string;
  readonly accountId: string;
  readonly kind: string;
  readonly amountMicros: bigint;
  readonly requestId: string;
  readonly inputTokens: bigint;
  readonly outputTokens: bigint;
  readonly idempotencyKey: string | null;
  readonly balanceAfterMicros: bigint;
  readonly reason: string;
  readonly priceVersion: number;
  /** The discount of the account for this call, in hundredths of a percent, or whether it had prices of its own. */
  readonly discount: number | null;
  readonly hasOwnPrices: boolean;
  /** The entry that an adjustment corrects; empty for others. */
  readonly adjustedId: string;
};

/** The time of a fault, by the clock of the history. */
export type Window = { readonly from: number; readonly to: number };

/** All records of an episode: those of the callers, those of the upstream, and the stored rows. */
export type Facts = {
  readonly episode: string;
  readonly tenants: Tenants;
  readonly entries: readonly Entry[];
  /** By op. */
  readonly executions: ReadonlyMap<number, readonly Execution[]>;
  readonly rows: readonly Row[];
  /** By request id; more than one row is a violation. */
  readonly rowsByRequest: ReadonlyMap<string, readonly Row[]>;
  /** The prices of the model that customers pay for, and since when they were in the files of the servers. */
  readonly prices: readonly { readonly at: number; readonly prices: PriceSet }[];
  readonly activeKeys: number;
  /** The keys in the database, by id. */
  readonly keyStates: ReadonlyMap<string, "active" | "revoked">;
  /** The initial balance of the account in the race for funds. */
  readonly fundedMicros: bigint;
  /** No fault was injected, so every failure is a bug. */
  readonly isCalm: boolean;
  /** A server died or was considered dead, so pieces that it delivered may not be charged. */
  readonly losesServers: boolean;
  readonly faultWindows: readonly Window[];
  /** When the database was killed. It may lose the admission counts of the last moment, and nothing else. */
  readonly databaseKills: readonly number[];
  /** When the database committed what it may have lost. */
  readonly lostCommits: Window | undefined;
  /** When servers may have used two primaries: what one of them confirms is unknown to the other. */
  readonly splitBrain: Window | undefined;
  /** The lanes of a cell that failed; undefined if no cell alone failed. */
  readonly failedLanes: ReadonlySet<Lane> | undefined;
  /** The database's clock differed from that of the history. */
  readonly hasClockSteps: boolean;
};

/** A broken invariant, with the details. */
export type Violation = { readonly rule: string; readonly text: string };

export async function readRows(owners: readonly postgres.Sql[], accountIds: readonly string[]): Promise<Row[]> {
  return await ofCells(
    owners,
    (owner) => owner<Row[]>`
    SELECT l.id, l.account_id AS "accountId", l.kind, l.amount_micros AS "amountMicros", l.request_id AS "requestId",
           (l.input + l.cached_input + l.cache_write)::bigint AS "inputTokens",
           (l.output + l.reasoning)::bigint AS "outputTokens", m.idempotency_key AS "idempotencyKey",
           l.balance_after_micros AS "balanceAfterMicros", l.reason, l.price_version AS "priceVersion", a.discount,
           a.rates IS NOT NULL AS "hasOwnPrices", l.adjusted_id AS "adjustedId"
    FROM ledger l LEFT JOIN movement_keys m USING (lane, account_id, seq)
    LEFT JOIN account_prices a ON a.lane = l.lane AND a.account_id = l.account_id AND a.version = l.price_list_version
    WHERE l.account_id = ANY (string_to_array(${accountIds.join()}, ',')) ORDER BY l.account_id, l.seq`,
  );
}

/** The rows of all cells. */
export async function ofCells<Result>(
  owners: readonly postgres.Sql[],
  read: (owner: postgres.Sql) => PromiseLike<readonly Result[]>,
): Promise<Result[]> {
  return (await Promise.all(owners.map(read))).flat();
}

export async function countActiveKeys(owners: readonly postgres.Sql[], accountId: string): Promise<number> {
  const rows = await ofCells(owners, (owner) => owner`SELECT 1 FROM keys WHERE account_id = ${accountId} AND revoked_at IS NULL`);
  return rows.length;
}

export async function readKeyStates(
  owners: readonly postgres.Sql[],
  accountIds: readonly string[],
): Promise<Map<string, "active" | "revoked">> {
  const rows = await ofCells(
    owners,
    (owner) => owner<{ id: string; state: "active" | "revoked" }[]>`
    SELECT id, CASE WHEN revoked_at IS NULL THEN 'active' ELSE 'revoked' END AS state
    FROM keys WHERE account_id = ANY (string_to_array(${accountIds.join()}, ','))`,
  );
  return new Map(rows.map(({ id, state }) => [id, state]));
}

export function groupBy<Item, Key>(items: Iterable<Item>, keyOf: (item: Item) => Key): Map<Key, Item[]> {
  const groups = new Map<Key, Item[]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}

export function describe(entry: Entry): string {
  const { kind, key, op, requestId, server, ending, status, code } = entry;
  return `${kind} ${requestId} (op ${op}, key ${key}, server ${server}): ${ending} ${status} ${code}`;
}
