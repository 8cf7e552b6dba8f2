-- Revokes a key of any account, for an operator or a member.
CREATE OR REPLACE FUNCTION revoke_any_key(p_act text, p_lane smallint, p_id text) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_account_id text;
BEGIN
  PERFORM require_lane(p_lane);
  UPDATE keys SET revoked_at = v_now WHERE lane = p_lane AND id = p_id AND revoked_at IS NULL
    RETURNING account_id INTO v_account_id;
  IF FOUND THEN
    PERFORM write_key_event(p_lane, p_id, 'key.revoked', jsonb_build_object('by', actor_kind(p_act)));
    PERFORM log_change(p_act, p_lane, p_id, v_account_id);
  END IF;
  RETURN QUERY SELECT * FROM view_keys(p_lane, '', p_id, '', 1);
END
$$;
