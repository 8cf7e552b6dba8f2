-- The counters of a call of the last of these keys at a time. p_version is that of the account's limits. The planner inlines it: a
-- call for each item of a batch takes much longer.
CREATE OR REPLACE FUNCTION counters_of_call(
  p_lane smallint, p_account_id text, p_key_ids text[], p_account_is_limited boolean, p_key_is_limited boolean,
  p_limited_plans text[], p_plans_version bigint, p_version bigint, p_user_id text, p_at timestamptz
) RETURNS SETOF call_counters
  LANGUAGE sql STABLE ROWS 1
AS $$
  SELECT array_agg(c.place), array_agg(c.counter),
         bool_and(coalesce(c.version = CASE s.plan WHEN '' THEN p_version ELSE p_plans_version END AND c.valid_until > p_at, false))
           -- With limits per user, there is a row for the user.
           AND count(*) FILTER (WHERE p_user_id <> '' AND c.user_id = '' AND true = ANY ((c.counter).per_users))
             <= count(*) FILTER (WHERE c.user_id <> '')
  FROM limit_subjects(p_lane, p_account_id, p_key_ids, p_account_is_limited, p_key_is_limited, p_limited_plans) s
  -- The limit keeps a look-up by key.
  LEFT JOIN LATERAL (SELECT i.ctid AS place, i.user_id, i.version, i.valid_until, i.counter FROM limit_counters i
    WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.subject_id = s.subject_id AND i.plan = s.plan
      AND i.user_id = ANY (ARRAY['', p_user_id]) LIMIT 2) c ON true
$$;
