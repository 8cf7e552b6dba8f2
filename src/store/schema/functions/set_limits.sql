-- Sets limits of an account, a key or a plan (in lane 1024, without an account). A limit with the same metric, window, model and
-- "per" gets the new amount and keeps what it has counted. p_replaces: the owner's other limits are removed. p_limits is a JSON
-- list of rows of limits, with ids for those that are new. The caller holds the lock of the account.
CREATE OR REPLACE FUNCTION set_limits(
  p_lane smallint, p_account_id text, p_owner_id text, p_limits text, p_replaces boolean
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  c_max constant integer := 20;
  v_now constant timestamptz := clock_timestamp();
  v_new text[];
BEGIN
  IF p_replaces THEN
    PERFORM remove_limit(p_lane, p_account_id, p_owner_id, l.id) FROM limits l
      WHERE l.lane = p_lane AND l.owner_id = p_owner_id AND NOT EXISTS (
        SELECT 1 FROM json_populate_recordset(NULL::limits, p_limits::json) n WHERE n.metric = l.metric
          AND n.period = l.period AND n.model = l.model AND n.per_user = l.per_user);
  END IF;
  WITH stored AS (
    INSERT INTO limits AS l (lane, id, owner_id, metric, period, amount, model, per_user, temporary_amount, temporary_until,
                             created_at)
    SELECT p_lane, n.id, p_owner_id, n.metric, n.period, n.amount, n.model, n.per_user, n.temporary_amount,
           n.temporary_until, v_now
    FROM json_populate_recordset(NULL::limits, p_limits::json) n
    ON CONFLICT ON CONSTRAINT limit_once DO UPDATE SET amount = excluded.amount,
      temporary_amount = excluded.temporary_amount, temporary_until = excluded.temporary_until
    RETURNING l.id, l.created_at
  )
  SELECT array_agg(s.id) INTO v_new FROM stored s WHERE s.created_at = v_now;
  IF (SELECT count(*) FROM limits l WHERE l.lane = p_lane AND l.owner_id = p_owner_id) > c_max THEN
    PERFORM refuse('invalid_argument', format('an owner can have at most %s limits', c_max), '{"field":"limits"}');
  END IF;
  IF p_account_id <> '' THEN
    PERFORM mark_limited(p_lane, p_account_id, p_owner_id);
    PERFORM count_spent(p_lane, p_account_id, p_owner_id, v_new);
  END IF;
END
$$;
