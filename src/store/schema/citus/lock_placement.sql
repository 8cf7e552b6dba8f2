-- Keeps the schema on its worker until the transaction ends. citus_schema_move waits for statements that write through
-- Citus, but not for those that only lock rows: without this, a batch could read its lanes and balances at the old
-- worker and write them at the new one. No row has this lane; the statement takes the lock before it looks for one.
CREATE OR REPLACE FUNCTION lock_placement() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE lanes SET epoch = epoch WHERE lane = -1;
END
$$;
