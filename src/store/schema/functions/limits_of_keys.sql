-- The limits that apply to the calls of a key at a time: those of its account, of the key and its ancestors (p_key_ids), and of
-- their plans. Limits for other models are among them. The planner inlines it: a call for each hold takes much longer.
CREATE OR REPLACE FUNCTION limits_of_keys(
  p_lane smallint, p_account_id text, p_key_ids text[], p_with_plans boolean, p_at timestamptz
) RETURNS SETOF applied_limit
  LANGUAGE sql STABLE ROWS 5
AS $$
  SELECT l.id, l.owner_id, l.owner_id, l.metric, l.period,
         CASE WHEN l.temporary_until > p_at THEN l.temporary_amount ELSE l.amount END, l.model, l.per_user
  FROM limits l WHERE l.lane = p_lane AND l.owner_id = ANY (array_append(p_key_ids, p_account_id))
  UNION ALL
  SELECT l.id, l.owner_id, k.id, l.metric, l.period,
         CASE WHEN l.temporary_until > p_at THEN l.temporary_amount ELSE l.amount END, l.model, l.per_user
  FROM keys k JOIN limits l ON l.lane = 1024 AND l.owner_id = k.plan
  WHERE p_with_plans AND k.lane = p_lane AND k.id = ANY (p_key_ids)
$$;
