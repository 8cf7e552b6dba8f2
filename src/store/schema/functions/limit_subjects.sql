-- Whose limits count a call of the last of these keys: the account, the key and its ancestors, and their plans.
CREATE OR REPLACE FUNCTION limit_subjects(
  p_lane smallint, p_account_id text, p_key_ids text[], p_account_is_limited boolean, p_key_is_limited boolean,
  p_limited_plans text[]
) RETURNS TABLE (subject_id text, plan text)
  LANGUAGE sql STABLE ROWS 2
AS $$
  SELECT p_account_id, '' WHERE p_account_is_limited
  UNION ALL
  SELECT unnest(p_key_ids), '' WHERE p_key_is_limited
  UNION ALL
  SELECT k.id, k.plan FROM keys k
  WHERE p_limited_plans IS NOT NULL AND k.lane = p_lane AND k.id = ANY (p_key_ids) AND k.plan = ANY (p_limited_plans)
$$;
