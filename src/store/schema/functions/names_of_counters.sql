-- The keys of the counters of a call, of those that exist and those that do not. Parameters are as in counters_of_call.
CREATE OR REPLACE FUNCTION names_of_counters(
  p_lane smallint, p_account_id text, p_key_ids text[], p_account_is_limited boolean, p_key_is_limited boolean,
  p_limited_plans text[], p_user_id text
) RETURNS SETOF counter_name
  LANGUAGE plpgsql STABLE ROWS 2
AS $$
BEGIN
  RETURN QUERY
  SELECT s.subject_id, s.plan, u.user_id
  FROM limit_subjects(p_lane, p_account_id, p_key_ids, p_account_is_limited, p_key_is_limited, p_limited_plans) s
  CROSS JOIN LATERAL (
    SELECT '' AS user_id
    UNION ALL
    SELECT counter_user(p_lane, p_account_id, s.subject_id, s.plan, p_user_id)
    WHERE p_user_id <> '' AND EXISTS (SELECT 1 FROM limits l WHERE l.per_user
      AND l.lane = CASE s.plan WHEN '' THEN p_lane ELSE 1024 END
      AND l.owner_id = CASE s.plan WHEN '' THEN s.subject_id ELSE s.plan END)
  ) u;
END
$$;
