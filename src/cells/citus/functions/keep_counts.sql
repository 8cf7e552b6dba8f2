-- While a schema moves from this node, lets the commit of the counts wait for the disk: the move waits until its target has what this
-- node has written, which leaves out commits that PostgreSQL keeps in memory for a moment.
CREATE OR REPLACE FUNCTION keep_counts() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM pg_replication_slots WHERE starts_with(slot_name, 'citus_shard_move_slot_')) THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END
$$;
