-- Changes a key of any account, for an operator or a member. The limit of an operator may exceed that of the plan.
CREATE OR REPLACE FUNCTION update_any_key(p_act text, p_lane smallint, p_id text, p_changes text) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_key keys;
BEGIN
  PERFORM require_lane(p_lane);
  PERFORM lock_account(p_lane, k.account_id) FROM keys k WHERE k.lane = p_lane AND k.id = p_id;
  v_key := lock_active_key(p_lane, p_id);
  PERFORM check_member_rpm(p_act, (p_changes::jsonb ->> 'rate_limit_rpm')::integer, require_plan(v_key.plan));
  PERFORM write_key(v_key, p_changes::jsonb, true, actor_kind(p_act));
  PERFORM log_change(p_act, p_lane, p_id, v_key.account_id);
  RETURN QUERY SELECT * FROM view_keys(p_lane, '', p_id, '', 1);
END
$$;
