-- The limits that apply to the calls of a key at a time: those of its account, of the key and its ancestors (p_key_ids), and of
-- their plans. Limits for other models are among them.
CREATE OR REPLACE FUNCTION limits_of_keys(
  p_lane smallint, p_account_id text, p_key_ids text[], p_with_plans boolean, p_at timestamptz
) RETURNS SETOF applied_limit
  LANGUAGE plpgsql STABLE ROWS 5
AS $$
BEGIN
  RETURN QUERY SELECT l.id, l.owner_id, l.owner_id, l.metric, l.period,
      CASE WHEN l.temporary_until > p_at THEN l.temporary_amount ELSE l.amount END, l.model, l.per_user
    FROM limits l WHERE l.lane = p_lane AND l.owner_id = ANY (p_account_id || p_key_ids);
  IF p_with_plans THEN
    RETURN QUERY SELECT l.id, l.owner_id, k.id, l.metric, l.period,
        CASE WHEN l.temporary_until > p_at THEN l.temporary_amount ELSE l.amount END, l.model, l.per_user
      FROM keys k JOIN limits l ON l.lane = 1024 AND l.owner_id = k.plan
      WHERE k.lane = p_lane AND k.id = ANY (p_key_ids);
  END IF;
END
$$;
