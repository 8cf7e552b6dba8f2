-- Changes a key of any account, for an operator. A limit that is set here may exceed that of the plan.
CREATE OR REPLACE FUNCTION update_any_key(p_act text, p_lane smallint, p_id text, p_changes text) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_key keys;
BEGIN
  PERFORM require_lane(p_lane);
  PERFORM lock_account(p_lane, k.account_id) FROM keys k WHERE k.lane = p_lane AND k.id = p_id;
  v_key := lock_active_key(p_lane, p_id);
  PERFORM write_key(v_key, p_changes::jsonb, true);
  PERFORM log_change(p_act, p_lane, p_id, v_key.account_id);
  RETURN QUERY SELECT * FROM view_keys(p_lane, '', p_id, '', 1);
END
$$;
