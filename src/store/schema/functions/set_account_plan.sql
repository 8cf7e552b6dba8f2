-- Changes the plan of an account. Its keys on the former plan follow; keys on another plan keep theirs. Counters of the former plan
-- count no entries from now on, and those of the new plan count them again.
CREATE OR REPLACE FUNCTION set_account_plan(p_caller caller, p_lane smallint, p_id text, p_plan text) RETURNS SETOF account_views
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account constant accounts := require_open_account(p_lane, p_id);
  v_plan constant plans := require_plan(p_plan);
  v_from_now_on constant int8multirange := int8multirange(int8range(v_account.last_seq + 1, NULL));
  v_moved text[];
BEGIN
  WITH moved AS (
    UPDATE keys SET plan = p_plan
    WHERE lane = p_lane AND account_id = p_id AND plan = v_account.plan AND plan <> p_plan AND revoked_at IS NULL
    RETURNING id
  )
  SELECT array_agg(m.id) INTO v_moved FROM moved m;
  IF v_moved IS NOT NULL THEN
    PERFORM check_key_cap(p_lane, p_id, v_plan);
    UPDATE limit_counters c
      SET uncounted = CASE c.plan WHEN p_plan THEN c.uncounted - v_from_now_on ELSE c.uncounted + v_from_now_on END
      WHERE c.lane = p_lane AND c.account_id = p_id AND c.subject_id = ANY (v_moved) AND c.plan IN (v_account.plan, p_plan)
        AND c.user_id = '';
  END IF;
  UPDATE accounts SET plan = p_plan WHERE lane = p_lane AND id = p_id;
  PERFORM log_change(p_caller, p_lane, p_id, p_id);
  RETURN QUERY SELECT * FROM get_account(p_lane, p_id);
END
$$;
