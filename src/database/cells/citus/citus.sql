-- Functions that only Citus needs, and its versions of functions of plain PostgreSQL.

-- Keeps the schema on its worker until the transaction ends, and returns whether this node is that worker. citus_schema_move
-- takes this lock exclusively (5 is ShareLock), and otherwise waits only for statements that write through Citus: without this, a
-- batch could read its lanes and balances at the old worker and write them at the new one.
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

-- Keeps the schema on its worker until the transaction ends, as pin_schema does, and refuses the statement at another node. The
-- server then sends it to the worker.
CREATE OR REPLACE FUNCTION require_schema() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF NOT pin_schema() THEN
    RAISE EXCEPTION USING ERRCODE = 'VX002', MESSAGE = 'schema_moved';
  END IF;
END
$$;

-- For nodes that do not have the schema. As for plain PostgreSQL, without common table expressions: Citus makes a distributed
-- plan for each, and refuses those of the other text. Windows are counted by one statement, because Citus also plans each
-- statement.
CREATE OR REPLACE FUNCTION admit(p_items admit_item[], p_while_suspended admit_item[] DEFAULT '{}') RETURNS SETOF admission
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_minute constant integer := floor(extract(epoch FROM v_now) / 60);
  v_left constant integer := ceil(60 - mod(extract(epoch FROM v_now), 60));
  v_lanes constant smallint[] := ARRAY(SELECT i.lane FROM unnest(p_items) i);
  v_known admitted_key[];
  v_counted key_minutes[];
  v_window key_minutes;
BEGIN
  PERFORM 1 FROM lanes WHERE NOT is_owned AND lane = ANY (v_lanes);
  IF FOUND THEN
    PERFORM raise_lane_moved();
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  v_known := ARRAY(SELECT k FROM admitted_keys(p_items, p_while_suspended, v_now) k);
  FOR v_window IN
    INSERT INTO key_minutes AS w (lane, key_id, minute, used, granted, rpm, last_used_at)
    SELECT k.lane, k.key_id, v_minute, k.slots, k.slots, k.rpm, v_now
    FROM unnest(v_known) k WHERE k.is_used AND k.state IN ('active', 'suspended') ORDER BY k.lane, k.key_id
    ON CONFLICT ON CONSTRAINT key_minutes_pkey DO UPDATE SET
      minute = counting_window(w.minute, excluded.minute),
      used = CASE WHEN w.minute >= excluded.minute
        THEN w.used + greatest(0, least(excluded.used, excluded.rpm - w.used)) ELSE excluded.used END,
      granted = CASE WHEN w.minute >= excluded.minute
        THEN greatest(0, least(excluded.used, excluded.rpm - w.used)) ELSE excluded.used END,
      rpm = excluded.rpm,
      last_used_at = greatest(w.last_used_at, excluded.last_used_at)
    WHERE excluded.used > 0 OR w.minute < excluded.minute
    RETURNING w.lane, w.key_id, w.minute, w.used, w.granted, w.rpm, w.last_used_at
  LOOP
    v_counted := array_append(v_counted, v_window);
  END LOOP;
  -- A call without its scope takes no slot, but its response shows the window.
  IF EXISTS (SELECT 1 FROM unnest(v_known) k WHERE k.calls > 0 AND k.slots = 0) THEN
    FOR v_window IN
      SELECT w.lane, w.key_id, w.minute, CASE WHEN w.minute >= v_minute THEN w.used ELSE 0 END, 0, w.rpm, w.last_used_at
      FROM unnest(v_known) k JOIN key_minutes w ON w.lane = k.lane AND w.key_id = k.key_id
      WHERE k.slots = 0 AND NOT EXISTS (SELECT 1 FROM unnest(v_counted) d WHERE d.lane = k.lane AND d.key_id = k.key_id)
    LOOP
      v_counted := array_append(v_counted, v_window);
    END LOOP;
  END IF;
  RETURN QUERY
  SELECT k.n, k.state, k.scopes, coalesce(c.granted, 0), c.used, k.rpm, CASE WHEN c.minute > v_minute THEN 60 ELSE v_left END,
         k.key_id, k.account_id, k.key_name, k.plan, k.visible_start, k.visible_end, k.balance_micros, k.models, k.allowed_cidrs,
         NULL::bytea, k.price_list_version
  FROM unnest(v_known) k LEFT JOIN unnest(v_counted) c ON c.lane = k.lane AND c.key_id = k.key_id;
  IF cardinality(v_known) < cardinality(p_items) THEN
    RETURN QUERY SELECT * FROM rotated_keys(p_items);
  END IF;
END
$$;

-- While a schema moves from this node, lets the commit of the counts wait for the disk: the move waits until its target has what
-- this node has written, which leaves out commits that PostgreSQL keeps in memory for a moment.
CREATE OR REPLACE FUNCTION keep_counts() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM pg_replication_slots WHERE starts_with(slot_name, 'citus_shard_move_slot_')) THEN
    PERFORM set_config('synchronous_commit', 'on', true);
  END IF;
END
$$;

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

-- As for plain PostgreSQL, but calls wait while the rows are copied: Citus distributes only a table that is created as a
-- partition, and that is refused while rows of its month are in ledger_other_months.
CREATE OR REPLACE FUNCTION move_other_month() RETURNS TABLE (partition text, entries bigint)
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
  v_month integer;
  v_moved bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM months_without_partition()) THEN
    RETURN;
  END IF;
  LOCK TABLE ledger_other_months IN ACCESS EXCLUSIVE MODE;
  SELECT m.month INTO v_month FROM months_without_partition() m LIMIT 1;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  CREATE TEMPORARY TABLE moved_entries ON COMMIT DROP AS SELECT l.* FROM ledger_other_months l WHERE l.month = v_month;
  DELETE FROM ledger_other_months l WHERE l.month = v_month;
  GET DIAGNOSTICS entries = ROW_COUNT;
  partition := 'ledger_' || to_char(make_date(1970 + v_month / 12, v_month % 12 + 1, 1), 'YYYY_MM');
  EXECUTE format('CREATE TABLE %I PARTITION OF ledger FOR VALUES FROM (%s) TO (%s)', partition, v_month, v_month + 1);
  INSERT INTO ledger SELECT * FROM pg_temp.moved_entries;
  GET DIAGNOSTICS v_moved = ROW_COUNT;
  IF entries <> v_moved THEN
    RAISE EXCEPTION '% entries of % were moved, and % deleted', v_moved, partition, entries;
  END IF;
  RETURN NEXT;
END
$$;
