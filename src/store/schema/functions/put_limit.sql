-- Sets a limit of an account, a key or a plan for an operator, or of an account for a member; p_limit is its row as JSON. An account
-- and a key have their lane, a plan has lane 1024. Returns the limit.
CREATE OR REPLACE FUNCTION put_limit(p_caller caller, p_lane smallint, p_owner_id text, p_limit text) RETURNS SETOF limit_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account_id constant text := lock_limit_owner(p_lane, p_owner_id);
  v_limit constant limits := json_populate_record(NULL::limits, p_limit::json);
BEGIN
  PERFORM set_limits(p_lane, v_account_id, p_owner_id, json_build_array(p_limit::json)::text, false, actor_kind(p_caller));
  PERFORM log_change(p_caller, p_lane, p_owner_id, v_account_id);
  IF p_lane = no_lane() THEN
    PERFORM change_shared_data();
  END IF;
  RETURN QUERY SELECT v.* FROM view_limits(p_lane, p_owner_id, '') v
    WHERE v.owner_id = p_owner_id AND v.metric = v_limit.metric AND v.period = v_limit.period AND v.model = v_limit.model
      AND v.per_user = v_limit.per_user;
END
$$;
