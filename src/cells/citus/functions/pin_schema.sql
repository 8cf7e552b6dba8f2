-- Keeps the schema on its worker until the transaction ends, and returns whether this node is that worker. citus_schema_move takes
-- this lock of the shard exclusively on all nodes before it changes the worker. It waits for statements that write through Citus, which
-- take the lock too, but not for those that only lock rows: without this, a batch could read its lanes and balances at the old worker
-- and write them at the new one. 5 is the number of ShareLock.
CREATE OR REPLACE FUNCTION pin_schema() RETURNS boolean
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM lock_shard_metadata(5, ARRAY[:shard_of_lanes]::bigint[]);
  RETURN EXISTS (
    SELECT 1 FROM pg_dist_placement p JOIN pg_dist_local_group g ON g.groupid = p.groupid
    WHERE p.shardid = :shard_of_lanes);
END
$$;
