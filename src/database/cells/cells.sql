-- Cells and lanes: who owns a lane, what all cells share, and splits.

-- The lanes that this cell owns, with their epochs, the version of its shared data, and its name if it has one.
-- null: name
CREATE OR REPLACE FUNCTION cell_state() RETURNS TABLE (lanes text, epochs text, shared_version bigint, name text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT coalesce(string_agg(l.lane::text, ',' ORDER BY l.lane), ''),
         coalesce(string_agg(l.epoch::text, ',' ORDER BY l.lane), ''), (SELECT s.version FROM shared_data s),
         (SELECT n.name FROM cell_name n)
  FROM lanes l WHERE l.is_owned
$$;

-- The lanes that have accounts, holds or ledger rows.
CREATE OR REPLACE FUNCTION lanes_in_use() RETURNS SETOF smallint
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET enable_seqscan = off
AS $$
BEGIN
  RETURN QUERY SELECT l.lane FROM lanes l
    WHERE EXISTS (SELECT 1 FROM accounts a WHERE a.lane = l.lane)
       OR EXISTS (SELECT 1 FROM holds h WHERE h.lane = l.lane)
       OR EXISTS (SELECT 1 FROM ledger e WHERE e.lane = l.lane)
    ORDER BY l.lane;
END
$$;

-- Locks a lane until the end of the transaction. Raises an error if another cell owns the lane.
CREATE OR REPLACE FUNCTION lock_lane(p_lane smallint) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM 1 FROM lanes WHERE lane = p_lane AND is_owned FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM raise_lane_moved();
  END IF;
END
$$;

-- Refuses a lane that another cell owns. Functions that write about an account check its lane before, unless they lock it, and so
-- do reads that corrections and exports rely on: a cell that gave up the lane has old rows.
CREATE OR REPLACE FUNCTION require_lane(p_lane smallint) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM lanes l WHERE l.lane = p_lane AND NOT l.is_owned) THEN
    PERFORM raise_lane_moved();
  END IF;
END
$$;

-- Another cell owns a lane of the statement. The server sends it there.
CREATE OR REPLACE FUNCTION raise_lane_moved() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'VX001', MESSAGE = 'lane_moved';
END
$$;

-- The chain of the operator events that concern no account: the number after the last lane.
CREATE OR REPLACE FUNCTION no_lane() RETURNS smallint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN 1024::smallint;

-- What the first cell shares with the others, as JSON: plans with their limits, operators without their identities, prices,
-- and webhooks of operators.
CREATE OR REPLACE FUNCTION read_shared_data()
  RETURNS TABLE (version bigint, plans text, limits text, operators text, prices text, webhooks text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT s.version, (SELECT coalesce(json_agg(p), '[]')::text FROM plans p),
         (SELECT coalesce(json_agg(l), '[]')::text FROM limits l WHERE l.lane = no_lane()),
         (SELECT coalesce(json_agg(json_build_object('id', o.id, 'name', o.name, 'role', o.role,
            'fingerprint', o.fingerprint, 'created_at', o.created_at, 'revoked_at', o.revoked_at)), '[]')::text FROM operators o),
         (SELECT coalesce(json_agg(v), '[]')::text FROM price_versions v),
         (SELECT coalesce(json_agg(w), '[]')::text FROM webhooks w WHERE w.lane = no_lane())
  FROM shared_data s
$$;

-- Stores the shared data of the first cell, unless a later version was stored. Operators are only compared with those who make
-- changes here: they sign in at the first cell.
CREATE OR REPLACE FUNCTION copy_shared_data(p_version bigint, p_plans text, p_limits text, p_operators text, p_prices text, p_webhooks text)
  RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  UPDATE shared_data SET version = p_version WHERE version < p_version;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  INSERT INTO plans AS p SELECT n.* FROM json_populate_recordset(NULL::plans, p_plans::json) n
    ON CONFLICT ON CONSTRAINT plans_pkey DO UPDATE
      SET rpm = excluded.rpm, max_active_keys = excluded.max_active_keys,
          max_keys_created_per_hour = excluded.max_keys_created_per_hour;
  DELETE FROM limits l WHERE l.lane = no_lane()
    AND NOT EXISTS (SELECT 1 FROM json_populate_recordset(NULL::limits, p_limits::json) n WHERE n.id = l.id);
  INSERT INTO limits AS l SELECT n.* FROM json_populate_recordset(NULL::limits, p_limits::json) n
    ON CONFLICT ON CONSTRAINT limits_pkey DO UPDATE SET amount = excluded.amount,
      temporary_amount = excluded.temporary_amount, temporary_until = excluded.temporary_until;
  -- The names and addresses of revoked operators can be used again.
  UPDATE operators o SET role = n.role, revoked_at = n.revoked_at
    FROM json_populate_recordset(NULL::operators, p_operators::json) n
    WHERE o.id = n.id AND (o.role, o.revoked_at) IS DISTINCT FROM (n.role, n.revoked_at);
  INSERT INTO operators (id, name, role, fingerprint, created_at, revoked_at)
    SELECT n.id, n.name, n.role, n.fingerprint, n.created_at, n.revoked_at
    FROM json_populate_recordset(NULL::operators, p_operators::json) n
    ON CONFLICT ON CONSTRAINT operators_pkey DO NOTHING;
  DELETE FROM webhooks w WHERE w.lane = no_lane()
    AND NOT EXISTS (SELECT 1 FROM json_populate_recordset(NULL::webhooks, p_webhooks::json) n WHERE n.id = w.id);
  PERFORM restart_queues(no_lane(), ARRAY(SELECT w.id FROM webhooks w
    JOIN json_populate_recordset(NULL::webhooks, p_webhooks::json) n ON n.id = w.id
    WHERE w.lane = no_lane() AND w.revision <> n.revision));
  INSERT INTO webhooks AS w SELECT n.* FROM json_populate_recordset(NULL::webhooks, p_webhooks::json) n
    ON CONFLICT ON CONSTRAINT webhooks_pkey DO UPDATE SET url = excluded.url, description = excluded.description,
      types = excluded.types, state = excluded.state, disabled_reason = excluded.disabled_reason, enabled_at = excluded.enabled_at,
      revision = excluded.revision,
      secret = excluded.secret, previous_secrets = excluded.previous_secrets, previous_expires_at = excluded.previous_expires_at;
  INSERT INTO price_versions SELECT n.* FROM json_populate_recordset(NULL::price_versions, p_prices::json) n
    ON CONFLICT ON CONSTRAINT price_versions_pkey DO NOTHING;
END
$$;

-- Marks the shared data as changed, so that it is copied to the other cells. Its lock orders the changes; a transaction
-- takes it last.
CREATE OR REPLACE FUNCTION change_shared_data() RETURNS void
  LANGUAGE sql
AS $$
  UPDATE shared_data SET version = version + 1
$$;

-- Records that lanes shall move to a cell of this name. Changes no ownership.
CREATE OR REPLACE FUNCTION begin_split(p_id text, p_source text, p_target text, p_lanes smallint[]) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
  v_name text;
  v_elsewhere smallint;
BEGIN
  INSERT INTO cell_name (name) VALUES (p_source) ON CONFLICT DO NOTHING;
  SELECT n.name INTO v_name FROM cell_name n;
  IF v_name <> p_source THEN
    RAISE EXCEPTION 'this database is the cell "%", not "%"', v_name, p_source;
  END IF;
  SELECT min(l.lane) INTO v_elsewhere FROM lanes l WHERE l.lane = ANY (p_lanes) AND NOT l.is_owned;
  IF v_elsewhere IS NOT NULL THEN
    RAISE EXCEPTION 'the cell "%" does not own lane %', p_source, v_elsewhere;
  END IF;
  INSERT INTO cell_splits (id, target, lanes, state, changed_at)
    VALUES (p_id, p_target, p_lanes, 'begun', clock_timestamp());
END
$$;

-- Gives up the lanes of a split. From the commit on, new statements about them are refused; those that began before may still
-- write.
CREATE OR REPLACE FUNCTION release_lanes(p_id text) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT
  SET lock_timeout = '1s'
AS $$
DECLARE
  v_lanes constant smallint[] := set_split_state(p_id, 'begun', 'released');
  v_released integer;
BEGIN
  UPDATE cell_splits s SET timeline = current_timeline() WHERE s.id = p_id;
  -- In ascending order, as all statements lock lanes.
  PERFORM 1 FROM lanes l WHERE l.lane = ANY (v_lanes) ORDER BY l.lane FOR UPDATE;
  UPDATE lanes l SET is_owned = false, epoch = l.epoch + 1 WHERE l.lane = ANY (v_lanes) AND l.is_owned;
  GET DIAGNOSTICS v_released = ROW_COUNT;
  IF v_released <> cardinality(v_lanes) THEN
    RAISE EXCEPTION 'the cell owns only % of the % lanes', v_released, cardinality(v_lanes);
  END IF;
END
$$;

-- The timeline of this primary. Each promotion begins a new one.
CREATE OR REPLACE FUNCTION current_timeline() RETURNS text
  LANGUAGE sql STABLE
  RETURN substring(pg_walfile_name(pg_current_wal_lsn()) FOR 8);

-- Makes a promoted standby the cell of the lanes of a split, and of no others. Its copy of the split must be confirmed:
-- then it has everything that was written about the lanes, and the source cannot take them back.
CREATE OR REPLACE FUNCTION claim_lanes(p_id text) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
  v_lanes constant smallint[] := set_split_state(p_id, 'confirmed', 'finished');
BEGIN
  UPDATE lanes l SET is_owned = l.lane = ANY (v_lanes),
    epoch = CASE WHEN l.lane = ANY (v_lanes) THEN l.epoch + 1 ELSE l.epoch END;
  PERFORM unblock_queues(v_lanes);
  UPDATE cell_name SET name = (SELECT s.target FROM cell_splits s WHERE s.id = p_id);
END
$$;

-- Takes back the lanes of a split that was not confirmed, which no other cell can have claimed.
CREATE OR REPLACE FUNCTION return_lanes(p_id text) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
  v_lanes constant smallint[] := set_split_state(p_id, 'released', 'returned');
BEGIN
  UPDATE lanes l SET is_owned = true, epoch = l.epoch + 1 WHERE l.lane = ANY (v_lanes);
  PERFORM unblock_queues(v_lanes);
END
$$;

-- Ends the wait of the queues of lanes that this cell owns from now on. Claims that began before are waited for, because they may
-- not see the change of the owner.
CREATE OR REPLACE FUNCTION unblock_queues(p_lanes smallint[]) RETURNS void
  LANGUAGE sql
AS $$
  LOCK TABLE webhook_queues IN EXCLUSIVE MODE;
  UPDATE webhook_queues q SET blocked_until = '-infinity' WHERE q.lane = ANY (p_lanes) AND q.blocked_until = 'infinity';
$$;

-- Takes back the lanes of a split whose standby is lost. After a failover, the standby may have a confirmation that
-- this server lacks.
CREATE OR REPLACE FUNCTION abort_split(p_id text) RETURNS void
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM return_lanes(p_id);
  IF NOT EXISTS (SELECT 1 FROM cell_splits s WHERE s.id = p_id AND s.timeline = current_timeline()) THEN
    RAISE EXCEPTION 'the source was replaced in a failover after it released the lanes';
  END IF;
END
$$;

-- Changes the state of a split and returns its lanes. Another state than p_from means that another command changed it.
CREATE OR REPLACE FUNCTION set_split_state(p_id text, p_from text, p_to text) RETURNS smallint[]
  LANGUAGE plpgsql SET search_path FROM CURRENT
AS $$
DECLARE
  v_lanes smallint[];
BEGIN
  UPDATE cell_splits s SET state = p_to, changed_at = clock_timestamp() WHERE s.id = p_id AND s.state = p_from
    RETURNING s.lanes INTO v_lanes;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the split is not in the state "%"; another command may have changed it', p_from;
  END IF;
  RETURN v_lanes;
END
$$;

-- Returns the currency of the amounts in the database. It is the given one until there are amounts, or servers that use another
-- one; NULL gives none.
-- null: p_code
CREATE OR REPLACE FUNCTION keep_currency(p_code text) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_code text := (SELECT c.code FROM currency c);
BEGIN
  IF v_code = p_code OR p_code IS NULL OR EXISTS (SELECT FROM accounts a WHERE a.last_seq > 0) OR EXISTS (SELECT FROM topups)
      OR EXISTS (SELECT FROM servers s WHERE s.seen_at > clock_timestamp() - interval '20 seconds') THEN
    RETURN v_code;
  END IF;
  UPDATE currency SET code = p_code;
  RETURN p_code;
END
$$;
