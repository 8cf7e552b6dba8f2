-- The ledger is partitioned by month, so that old months can be archived and dropped. The table of before becomes the first
-- partition, for all months up to a bound; online/ has checked the bound, so that no row is read here.
--
-- No settlement runs until the functions whose variables have the row type of the ledger are applied again, in the same
-- transaction: the type of before is now that of the first partition.
LOCK TABLE lanes IN EXCLUSIVE MODE;
DROP FUNCTION IF EXISTS add_usage(ledger[], timestamptz, boolean), name_users(ledger[], integer);
DELETE FROM functions WHERE name IN ('add_usage', 'name_users', 'post_entries', 'move_balance');

DO $$
DECLARE
  c_today constant timestamp := clock_timestamp() AT TIME ZONE 'UTC';
  -- Months since January 1970.
  c_month constant integer := (extract(year FROM c_today) - 1970) * 12 + extract(month FROM c_today) - 1;
  v_end integer := (SELECT substring(pg_get_constraintdef(c.oid) FROM '[0-9]+')::integer FROM pg_constraint c
    WHERE c.conrelid = 'ledger'::regclass AND c.conname = 'ledger_month_bound');
  v_last date;
  v_first_partition text;
BEGIN
  IF v_end IS NULL THEN
    -- Only an empty database has no bound yet.
    v_end := greatest(c_month, (SELECT max(l.month) FROM ledger l)) + 1;
  END IF;
  v_last := make_date(1970 + (v_end - 1) / 12, (v_end - 1) % 12 + 1, 1);
  v_first_partition := 'ledger_until_' || to_char(v_last, 'YYYY_MM');
  EXECUTE format('ALTER TABLE ledger RENAME TO %I', v_first_partition);
  EXECUTE format('ALTER TABLE %I RENAME CONSTRAINT ledger_pkey TO %I', v_first_partition, v_first_partition || '_pkey');
  EXECUTE format('ALTER TABLE %I RENAME CONSTRAINT ledger_entry_once TO %I', v_first_partition,
    v_first_partition || '_once');
  EXECUTE format('ALTER INDEX ledger_movements RENAME TO %I', v_first_partition || '_movements');
  EXECUTE format('ALTER INDEX ledger_by_key RENAME TO %I', v_first_partition || '_by_key');
  EXECUTE format('CREATE TABLE ledger (LIKE %I) PARTITION BY RANGE (month)', v_first_partition);
  ALTER TABLE ledger ADD CONSTRAINT ledger_pkey PRIMARY KEY (lane, account_id, seq, month);
  ALTER TABLE ledger ADD CONSTRAINT ledger_entry_once UNIQUE (lane, id, month);
  ALTER TABLE ledger ADD CONSTRAINT entry_has_reason CHECK (reason <> '');
  CREATE INDEX ledger_movements ON ledger (lane, account_id, seq) WHERE kind <> 'generation';
  CREATE INDEX ledger_by_key ON ledger (lane, account_id, key_id, seq) WHERE kind = 'generation';
  EXECUTE format('ALTER TABLE ledger ATTACH PARTITION %I FOR VALUES FROM (MINVALUE) TO (%s)', v_first_partition, v_end);
  EXECUTE format('ALTER TABLE %I DROP CONSTRAINT IF EXISTS ledger_month_bound', v_first_partition);
END
$$;

-- A write never fails because a partition is missing: rows of months without one are in this table.
CREATE TABLE ledger_other_months PARTITION OF ledger DEFAULT;

-- Replaced, not dropped: functions return its row type.
CREATE OR REPLACE VIEW priced_ledger AS
  SELECT l.*, p.input AS input_price, p.cached_input AS cached_input_price, p.cache_write AS cache_write_price,
         p.output AS output_price, p.reasoning AS reasoning_price, p.image AS image_price, p.request AS request_price
  FROM ledger l LEFT JOIN price_versions p ON p.model = l.model AND p.version = l.price_version;

-- The archived partitions. Their entries are in files, and each file has the entries of an account in order, without gaps.
CREATE TABLE ledger_archives (
  -- The last month of the partition, in months since January 1970. The file has the entries that were created until its
  -- end and are in no earlier file.
  month integer PRIMARY KEY,
  file text NOT NULL,
  sha256 bytea NOT NULL,
  entries bigint NOT NULL,
  -- NULL until the entries are removed from the ledger: up to then, the ledger has them, and nothing else reads this row.
  removed_at timestamptz
);

-- The last entry of each account in each archive, with totals since its first entry. The ledger continues there.
CREATE TABLE archived_ledger (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  month integer NOT NULL,
  -- The first quarter of an hour, since 1970, after the archive.
  end_quarter integer NOT NULL,
  seq bigint NOT NULL,
  balance_micros bigint NOT NULL,
  hash bytea NOT NULL,
  -- See usage_fingerprint.
  usage_fingerprint numeric NOT NULL,
  PRIMARY KEY (lane, account_id, month)
);
