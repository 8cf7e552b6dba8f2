import type postgres from "postgres";
import { EXPECTED_HASH } from "../../support/ledger-hash.ts";
import type { Violation } from "./facts.ts";

const RULE = "1 balance = Σ ledger, held = Σ holds";

/** Invariant 1 in one snapshot of the tables. It holds at any moment, under any fault. */
export async function checkMoney(owner: postgres.Sql): Promise<Violation[]> {
  const rows = await owner<{ id: string; detail: string }[]>`
    SELECT a.id, concat('balance ', a.balance_micros, ', ledger ', l.sum, ', held ', a.held_micros, ', holds ', h.sum,
                        ', rows ', l.count, ' of ', a.last_seq) AS detail
    FROM vx.accounts a
    CROSS JOIN LATERAL (SELECT coalesce(sum(amount_micros), 0) AS sum, count(*) AS count FROM vx.ledger l
                        WHERE l.lane = a.lane AND l.account_id = a.id) l
    CROSS JOIN LATERAL (SELECT coalesce(sum(amount_micros), 0) AS sum FROM vx.holds h
                        WHERE h.lane = a.lane AND h.account_id = a.id) h
    WHERE a.balance_micros <> l.sum OR a.held_micros <> h.sum OR a.held_micros NOT BETWEEN 0 AND a.balance_micros
       OR a.last_seq <> l.count`;
  return rows.map(({ id, detail }) => ({ rule: RULE, text: `account ${id}: ${detail}` }));
}

/** Recomputes the hash of every row. */
export async function checkHashes(owner: postgres.Sql): Promise<Violation[]> {
  const rows = await owner<{ id: string }[]>`
    SELECT id FROM (
      SELECT l.id, l.hash, ${owner.unsafe(EXPECTED_HASH)} AS expected
      FROM vx.ledger l WINDOW c AS (PARTITION BY l.account_id ORDER BY l.seq)
    ) chain WHERE hash <> expected`;
  return rows.map(({ id }) => ({ rule: RULE, text: `the hash of row ${id} is wrong` }));
}
