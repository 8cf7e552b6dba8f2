import type postgres from "postgres";
import { EXPECTED_HASH_OF_ROW } from "../../support/ledger-hash.ts";

export const thisMonth = (() => {
  const today = new Date();
  return (today.getUTCFullYear() - 1970) * 12 + today.getUTCMonth();
})();

/** An entry as it would be if it had been charged in another month. */
export type PastEntry = {
  readonly accountId: string;
  readonly seq: number;
  /** When it was charged, by the database's clock. */
  readonly createdIn: number;
  /** When the call began, by the clock of its server. */
  readonly begunIn?: number;
};

/** Gives each of the last months a partition, as if the database had existed then. */
export async function createPastPartitions(owner: postgres.Sql, months: number): Promise<void> {
  const [first] = await owner<{ name: string }[]>`SELECT name FROM vx.ledger_partitions() LIMIT 1`;
  const name = first?.name ?? "";
  await owner.unsafe(`ALTER TABLE vx.ledger DETACH PARTITION vx.${name}`);
  for (let month = thisMonth - months; month <= thisMonth; month++) {
    const partition = `vx.ledger_${1970 + Math.floor(month / 12)}_${String((month % 12) + 1).padStart(2, "0")}`;
    // This month has one already if the database was created in the month before.
    await owner.unsafe(
      `CREATE TABLE IF NOT EXISTS ${partition} PARTITION OF vx.ledger FOR VALUES FROM (${month}) TO (${month + 1})`,
    );
  }
  await owner.unsafe(`INSERT INTO vx.ledger SELECT * FROM vx.${name}`);
  await owner.unsafe(`DROP TABLE vx.${name}`);
}

/** Moves entries to earlier months: their rows, hashes and usage are as if they had been charged then. */
export async function moveToPast(owner: postgres.Sql, entries: readonly PastEntry[]): Promise<void> {
  for (const { accountId, seq, createdIn, begunIn = createdIn } of entries) {
    const createdAt = new Date(Date.UTC(1970, createdIn, 2, 0, 0, seq));
    await owner`
      UPDATE vx.ledger SET month = ${begunIn}, created_at = ${createdAt} WHERE account_id = ${accountId} AND seq = ${seq}`;
    await owner`UPDATE vx.movement_keys SET month = ${begunIn} WHERE account_id = ${accountId} AND seq = ${seq}`;
  }
  await owner.unsafe(`
    DO $$
    DECLARE
      l record;
      v_hash bytea;
    BEGIN
      FOR l IN SELECT * FROM vx.ledger ORDER BY account_id, seq LOOP
        v_hash := CASE l.seq WHEN 1 THEN '\\x' ELSE v_hash END;
        v_hash := ${EXPECTED_HASH_OF_ROW};
        UPDATE vx.ledger SET hash = v_hash WHERE lane = l.lane AND account_id = l.account_id AND seq = l.seq;
      END LOOP;
    END $$`);
  await owner`
    UPDATE vx.accounts a SET last_hash = l.hash FROM vx.ledger l
    WHERE l.lane = a.lane AND l.account_id = a.id AND l.seq = a.last_seq`;
  await owner`DELETE FROM vx.usage_quarters`;
  await owner`
    INSERT INTO vx.usage_quarters
    SELECT lane, account_id, floor(extract(epoch FROM created_at) / 900)::integer, key_id, model, user_id, price_version,
           count(*), sum(input), sum(cached_input), sum(cache_write), sum(output), sum(reasoning), sum(images),
           sum(image_tokens), -sum(amount_micros), sum(cache_write_1h), price_tier, price_list_version, upstream,
           coalesce(sum(upstream_cost_micros), 0),
           coalesce(-sum(amount_micros) FILTER (WHERE upstream_cost_micros IS NULL), 0)
    FROM vx.ledger WHERE kind = 'generation' GROUP BY 1, 2, 3, 4, 5, 6, 7, price_tier, price_list_version, upstream`;
}
