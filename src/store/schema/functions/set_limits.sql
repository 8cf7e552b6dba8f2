-- Sets limits of an account, a key or a plan (in lane 1024, without an account). A limit with the same metric, window, model and
-- "per" gets the new amount and keeps what it has counted. p_replaces: the owner's other limits are removed. p_limits is a JSON
-- list of rows of limits, with ids for those that are new. A member may only repeat the limits of operators, and a key may also lower
-- them; see actor_kind. The caller holds the lock of the account.
CREATE OR REPLACE FUNCTION set_limits(
  p_lane smallint, p_account_id text, p_owner_id text, p_limits text, p_replaces boolean, p_actor text
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  c_max constant integer := 20;
  v_now constant timestamptz := clock_timestamp();
  v_new text[];
BEGIN
  IF p_replaces THEN
    PERFORM remove_limit(p_lane, p_account_id, p_owner_id, l.id, p_actor) FROM limits l
      WHERE l.lane = p_lane AND l.owner_id = p_owner_id AND NOT EXISTS (
        SELECT 1 FROM json_populate_recordset(NULL::limits, p_limits::json) n WHERE n.metric = l.metric
          AND n.period = l.period AND n.model = l.model AND n.per_user = l.per_user);
  END IF;
  PERFORM refuse_change_of_limit() FROM limits l
    JOIN json_populate_recordset(NULL::limits, p_limits::json) n
      ON (n.metric, n.period, n.model, n.per_user) = (l.metric, l.period, l.model, l.per_user)
    CROSS JOIN LATERAL (SELECT CASE WHEN l.temporary_until > v_now THEN l.temporary_until END) r (until)
    WHERE l.lane = p_lane AND l.owner_id = p_owner_id AND l.is_of_operator AND CASE p_actor
      WHEN 'operator' THEN false
      WHEN 'key' THEN n.amount > l.amount OR n.temporary_until > coalesce(r.until, '-infinity')
        OR n.temporary_amount > l.temporary_amount
      ELSE n.amount <> l.amount OR (n.temporary_until, n.temporary_amount) IS DISTINCT FROM
        (r.until, CASE WHEN r.until IS NOT NULL THEN l.temporary_amount END) END;
  WITH stored AS (
    INSERT INTO limits AS l (lane, id, owner_id, metric, period, amount, model, per_user, temporary_amount, temporary_until,
                             created_at, is_of_operator)
    SELECT p_lane, n.id, p_owner_id, n.metric, n.period, n.amount, n.model, n.per_user, n.temporary_amount,
           n.temporary_until, v_now, p_actor = 'operator'
    FROM json_populate_recordset(NULL::limits, p_limits::json) n
    ON CONFLICT ON CONSTRAINT limit_once DO UPDATE SET amount = excluded.amount,
      temporary_amount = excluded.temporary_amount, temporary_until = excluded.temporary_until,
      -- A form that repeats the limits of a key changes none of them.
      is_of_operator = l.is_of_operator OR excluded.is_of_operator AND NOT (p_replaces
        AND (l.amount, l.temporary_amount, l.temporary_until)
          IS NOT DISTINCT FROM (excluded.amount, excluded.temporary_amount, excluded.temporary_until))
    RETURNING l.id, l.created_at
  )
  SELECT array_agg(s.id) INTO v_new FROM stored s WHERE s.created_at = v_now;
  -- Customers leave room for the limits of operators, and the reverse.
  PERFORM refuse('invalid_argument',
      format('an owner can have at most %s limits of operators and %1$s others', c_max), '{"field":"limits"}')
    FROM limits l WHERE l.lane = p_lane AND l.owner_id = p_owner_id GROUP BY l.is_of_operator HAVING count(*) > c_max;
  IF p_account_id <> '' THEN
    PERFORM mark_limited(p_lane, p_account_id, p_owner_id);
    PERFORM count_spent(p_lane, p_account_id, p_owner_id, v_new);
  END IF;
END
$$;
