-- Functions that only Citus needs, and its versions of functions of plain PostgreSQL.

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

-- For nodes that do not have the schema. As for plain PostgreSQL, without common table expressions: Citus makes a distributed plan for
-- each, and refuses those of the other text. Windows are counted by one statement, because Citus also plans each statement.
CREATE OR REPLACE FUNCTION admit(p_items admit_item[], p_while_suspended admit_item[] DEFAULT '{}') RETURNS TABLE (
    n integer, state text, scopes smallint, granted integer, used integer, rpm integer, seconds_left integer,
    key_id text, account_id text, key_name text, plan text, visible_start text, visible_end text,
    balance_micros bigint, models text, allowed_cidrs text, current_fingerprint bytea, price_list_version integer
  )
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_minute constant integer := floor(extract(epoch FROM v_now) / 60);
  v_left constant integer := ceil(60 - mod(extract(epoch FROM v_now), 60));
  v_lanes constant smallint[] := ARRAY(SELECT i.lane FROM unnest(p_items) i);
  -- For each known key: the row of its window (not stored if no call uses the key) and the other columns of the result.
  v_calls key_minutes[];
  v_n integer[];
  v_states text[];
  v_is_used boolean[];
  v_scopes smallint[];
  v_ids text[];
  v_accounts text[];
  v_names text[];
  v_plans text[];
  v_starts text[];
  v_ends text[];
  v_balances bigint[];
  v_models text[];
  v_cidrs text[];
  v_price_lists integer[];
  v_has_unscoped boolean;
  v_counted key_minutes[];
  v_window key_minutes;
BEGIN
  PERFORM 1 FROM lanes WHERE NOT is_owned AND lane = ANY (v_lanes);
  IF FOUND THEN
    PERFORM raise_lane_moved();
  END IF;
  PERFORM set_config('synchronous_commit', 'off', true);
  SELECT array_agg(k.n), array_agg(k.scopes), array_agg(k.key_id), array_agg(k.account_id), array_agg(k.key_name),
         array_agg(k.plan), array_agg(k.visible_start), array_agg(k.visible_end), array_agg(k.balance_micros), array_agg(k.models),
         array_agg(k.allowed_cidrs), array_agg(k.price_list_version),
         array_agg(CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN k.expires_at <= v_now THEN 'expired'
                        WHEN k.suspended_at IS NOT NULL THEN 'suspended' ELSE 'active' END),
         array_agg(ROW(k.lane, k.key_id, v_minute, k.slots, k.slots, k.rpm, v_now)::key_minutes),
         array_agg(k.is_used), bool_or(k.calls > 0 AND k.slots = 0)
    INTO v_n, v_scopes, v_ids, v_accounts, v_names, v_plans, v_starts, v_ends, v_balances, v_models, v_cidrs, v_price_lists, v_states, v_calls, v_is_used, v_has_unscoped
    FROM admitted_keys(p_items, p_while_suspended) k;
  FOR v_window IN
    INSERT INTO key_minutes AS w (lane, key_id, minute, used, granted, rpm, last_used_at)
    SELECT c.lane, c.key_id, c.minute, c.used, c.granted, c.rpm, c.last_used_at
    FROM unnest(v_states, v_is_used, v_calls) AS c (state, is_used, lane, key_id, minute, used, granted, rpm, last_used_at)
    WHERE c.is_used AND c.state IN ('active', 'suspended') ORDER BY c.lane, c.key_id
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
  IF v_has_unscoped THEN
    FOR v_window IN
      SELECT w.lane, w.key_id, w.minute, CASE WHEN w.minute >= v_minute THEN w.used ELSE 0 END, 0, w.rpm, w.last_used_at
      FROM unnest(v_calls) c JOIN key_minutes w ON w.lane = c.lane AND w.key_id = c.key_id
      WHERE c.used = 0 AND NOT EXISTS (
        SELECT 1 FROM unnest(v_counted) d WHERE d.lane = c.lane AND d.key_id = c.key_id)
    LOOP
      v_counted := array_append(v_counted, v_window);
    END LOOP;
  END IF;
  RETURN QUERY
  SELECT k.n, k.state, k.scopes, coalesce(c.granted, 0), c.used, k.rpm,
         CASE WHEN c.minute > v_minute THEN 60 ELSE v_left END, k.id, k.account_id, k.name, k.plan, k.visible_start,
         k.visible_end, k.balance, k.models, k.cidrs, NULL::bytea, k.price_list
  FROM unnest(v_n, v_states, v_scopes, v_ids, v_accounts, v_names, v_plans, v_starts, v_ends, v_balances, v_models, v_cidrs, v_price_lists,
      v_calls)
    AS k (n, state, scopes, id, account_id, name, plan, visible_start, visible_end, balance, models, cidrs, price_list,
      lane, key_id, minute, slots, granted, rpm, last_used_at)
  LEFT JOIN unnest(v_counted) c ON c.lane = k.lane AND c.key_id = k.key_id;
  IF coalesce(cardinality(v_n), 0) < cardinality(p_items) THEN
    RETURN QUERY SELECT * FROM rotated_keys(p_items);
  END IF;
END
$$;

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

-- As for plain PostgreSQL, but calls wait while the rows are copied: Citus distributes only a table that is created as a partition, and
-- that is refused while rows of its month are in ledger_other_months.
CREATE OR REPLACE FUNCTION move_other_month() RETURNS TABLE (partition text, entries bigint)
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
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
