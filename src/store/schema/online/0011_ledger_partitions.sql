-- Adds the bound of the months that the ledger has, and checks it without keeping anyone from writing. Next month is
-- within it, so that a server whose clock is ahead, or a month that begins meanwhile, violates nothing.
DO $$
DECLARE
  c_today constant timestamp := clock_timestamp() AT TIME ZONE 'UTC';
  c_month constant integer := (extract(year FROM c_today) - 1970) * 12 + extract(month FROM c_today) - 1;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM pg_constraint c
      WHERE c.conrelid = 'ledger'::regclass AND c.conname = 'ledger_month_bound') THEN
    EXECUTE format('ALTER TABLE ledger ADD CONSTRAINT ledger_month_bound CHECK (month < %s) NOT VALID',
      greatest(c_month + 1, (SELECT max(l.month) FROM ledger l)) + 1);
    COMMIT;
  END IF;
  ALTER TABLE ledger VALIDATE CONSTRAINT ledger_month_bound;
END
$$;
