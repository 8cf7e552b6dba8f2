-- Refuses limits above the same limits of the calling key or of a key that created it. p_limits is as in set_limits.
CREATE OR REPLACE FUNCTION check_limit_bounds(p_caller keys, p_limits json) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_above record;
BEGIN
  IF coalesce(json_typeof(p_limits), 'null') = 'null' THEN
    RETURN;
  END IF;
  -- A temporary amount counts until it ends.
  SELECT g.n - 1 AS i, CASE WHEN n.amount > l.amount THEN 'amount' ELSE 'temporary_amount' END AS field,
         CASE WHEN n.amount > l.amount THEN l.amount ELSE t.amount END AS most
    INTO v_above
    FROM json_array_elements(p_limits) WITH ORDINALITY g (given, n)
    CROSS JOIN LATERAL json_populate_record(NULL::limits, g.given) n
    JOIN limits l ON l.lane = p_caller.lane AND l.owner_id = ANY (p_caller.ancestors || p_caller.id)
      AND (l.metric, l.period, l.model, l.per_user) = (n.metric, n.period, n.model, n.per_user)
    CROSS JOIN LATERAL (
      SELECT CASE WHEN l.temporary_until >= n.temporary_until THEN l.temporary_amount ELSE l.amount END
    ) t (amount)
    WHERE n.amount > l.amount OR n.temporary_amount > t.amount
    ORDER BY g.n, most LIMIT 1;
  IF FOUND THEN
    PERFORM refuse('invalid_argument',
      format('must be at most %s, the same limit of the calling key or of a key that created it', v_above.most),
      jsonb_build_object('field', format('limits[%s].%s', v_above.i, v_above.field)));
  END IF;
END
$$;
