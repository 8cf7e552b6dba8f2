-- Releases the abandoned holds of a lane, uncharged, and deletes answers older than 24 hours and counters of passed windows.
-- Returns the number of released holds: none if another cell owns the lane.
CREATE OR REPLACE FUNCTION sweep(p_lane smallint) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now timestamptz;
  v_swept bigint;
  v_released holds[];
  v_accounts text[];
  v_hold holds;
BEGIN
  PERFORM 1 FROM lanes l WHERE l.lane = p_lane AND l.is_owned FOR UPDATE;
  IF NOT FOUND THEN
    RETURN 0;
  END IF;
  v_now := clock_timestamp();
  DELETE FROM answers x USING (
    SELECT o.lane, o.account_id, o.idempotency_key FROM answers o
    WHERE o.lane = p_lane AND o.created_at < v_now - interval '24 hours' AND NOT EXISTS (
      SELECT 1 FROM holds h WHERE h.lane = p_lane AND h.id = o.generation_id)
    LIMIT 1000
  ) old WHERE x.lane = old.lane AND x.account_id = old.account_id AND x.idempotency_key = old.idempotency_key;
  WITH swept AS MATERIALIZED (
    DELETE FROM holds h WHERE h.lane = p_lane
      AND (h.expires_at < v_now OR NOT EXISTS (SELECT 1 FROM servers s WHERE s.id = h.server_id))
    RETURNING h.*
  ), forgotten AS (
    DELETE FROM answers x USING swept s
    WHERE x.lane = p_lane AND x.account_id = s.account_id AND x.idempotency_key = s.idempotency_key AND x.generation_id = s.id
  ), released AS (
    UPDATE accounts a SET held_micros = a.held_micros - t.amount
    FROM (SELECT s.account_id, sum(s.amount_micros)::bigint AS amount FROM swept s GROUP BY s.account_id) t
    WHERE a.lane = p_lane AND a.id = t.account_id
  )
  SELECT (SELECT count(*) FROM swept), ARRAY(SELECT ROW(s.*)::holds FROM swept s WHERE s.counters IS NOT NULL),
      ARRAY(SELECT DISTINCT s.account_id FROM swept s)
    INTO v_swept, v_released, v_accounts;
  PERFORM take_owed(p_lane, t.account_id, ''), expire_grants(p_lane, t.account_id) FROM unnest(v_accounts) t (account_id);
  FOREACH v_hold IN ARRAY v_released LOOP
    PERFORM write_counters(s.places, s.counters)
      FROM settle_limits(p_lane, v_hold.account_id, NULL, NULL, NULL, NULL, v_hold.counters, NULL, NULL, NULL, NULL, v_now) s
      WHERE s.places IS NOT NULL;
  END LOOP;
  PERFORM sweep_counters(p_lane, v_now);
  RETURN v_swept;
END
$$;
