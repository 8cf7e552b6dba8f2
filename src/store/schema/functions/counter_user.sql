-- The user whose counters count a call with this user. An account has at most 100,000 rows of users: the other users share one.
CREATE OR REPLACE FUNCTION counter_user(p_lane smallint, p_account_id text, p_subject_id text, p_plan text, p_user_id text)
  RETURNS text
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  IF EXISTS (SELECT 1 FROM limit_counters c WHERE c.lane = p_lane AND c.account_id = p_account_id
      AND c.subject_id = p_subject_id AND c.plan = p_plan AND c.user_id = p_user_id)
    OR NOT EXISTS (SELECT 1 FROM limit_users u WHERE u.lane = p_lane AND u.account_id = p_account_id
      AND u.counters >= 100000)
  THEN
    RETURN p_user_id;
  END IF;
  RETURN '(other)';
END
$$;
