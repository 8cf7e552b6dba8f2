-- A worker cannot create tables. There, this makes the coordinator create the partitions of the ledger, and returns true.
CREATE OR REPLACE FUNCTION partitions_at_coordinator() RETURNS boolean
  LANGUAGE plpgsql
AS $$
DECLARE
  v_reply record;
BEGIN
  IF (SELECT groupid FROM pg_dist_local_group) = 0 THEN
    RETURN false;
  END IF;
  SELECT * INTO v_reply
    FROM run_command_on_coordinator(format('SELECT count(*) FROM %I.create_ledger_partitions()', current_schema()));
  IF NOT v_reply.success THEN
    RAISE EXCEPTION 'the coordinator cannot create the partitions of the ledger: %', v_reply.result;
  END IF;
  RETURN true;
END
$$;
