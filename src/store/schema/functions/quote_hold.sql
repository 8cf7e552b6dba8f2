-- What would happen to a hold, the only item of p_holds: the balance and the amount held of its account, and the check of its
-- limits. Holds nothing.
CREATE OR REPLACE FUNCTION quote_hold(p_holds hold_item[]) RETURNS SETOF item_result
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_hold constant hold_item := p_holds[1];
  v_check limit_check;
  r record;
BEGIN
  SELECT a.balance_micros, a.held_micros, limits_of_holds(p_holds, limited_plans(), clock_timestamp()) AS limits
    INTO STRICT r FROM accounts a JOIN keys k ON k.lane = a.lane AND k.account_id = a.id
    WHERE a.lane = v_hold.lane AND a.id = v_hold.account_id AND k.id = v_hold.key_id;
  v_check := check_limits(r.limits, 1, cardinality(r.limits), NULL);
  RETURN NEXT ROW('hold', 1, CASE WHEN r.balance_micros - r.held_micros < v_hold.amount THEN 'insufficient'
    WHEN v_check.is_refused THEN 'limited' ELSE 'held' END, r.balance_micros, r.held_micros, NULL, NULL,
    v_check.details)::item_result;
END
$$;
