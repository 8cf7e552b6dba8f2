-- What would happen to a hold, the only item of p_holds: the balance and the amount held of its account, and the check of its
-- limits. Holds nothing.
CREATE OR REPLACE FUNCTION quote_hold(p_holds hold_item[]) RETURNS SETOF item_result
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_hold constant hold_item := p_holds[1];
  v_plans constant plans_with_limits := limited_plans();
  v_now constant timestamptz := clock_timestamp();
  v_is_short boolean;
  v_check limit_check;
  r record;
BEGIN
  SELECT greatest(a.held_micros, a.balance_micros - CASE WHEN a.grants_expire_at <= v_now
        THEN expired_credit(a.lane, a.id, v_now) ELSE 0 END) AS balance_micros, a.held_micros, a.owed_micros, greatest(v_now, a.last_at) AS at, ARRAY(
      SELECT n FROM names_of_counters(a.lane, a.id, array_append(k.ancestors, k.id), a.is_limited, k.is_limited, v_plans.names,
        user_digest(a.user_salt, v_hold.user_id)) n) AS names
    INTO STRICT r FROM accounts a JOIN keys k ON k.lane = a.lane AND k.account_id = a.id
    WHERE a.lane = v_hold.lane AND a.id = v_hold.account_id AND k.id = v_hold.key_id;
  v_is_short := r.balance_micros - r.held_micros < v_hold.amount;
  -- Counters that do not exist are not written.
  v_check := check_limits(NULL, ARRAY(SELECT c.counter FROM aligned_counters(v_hold.lane, v_hold.account_id, r.names, r.at) c), NULL,
    NULL, v_hold.model, v_hold.user_id, v_hold.amount, v_hold.tokens, v_is_short, r.at);
  RETURN NEXT ROW('hold', 1, CASE WHEN r.owed_micros > 0 THEN 'owing' WHEN v_is_short THEN 'insufficient'
      WHEN v_check.is_refused THEN 'limited' ELSE 'held' END,
    r.balance_micros, r.held_micros, nullif(r.owed_micros, 0), NULL, v_check.details)::item_result;
END
$$;
