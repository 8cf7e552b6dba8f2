-- Gives a key of any account a new secret, for an operator or a member.
CREATE OR REPLACE FUNCTION rotate_any_key(
  p_act text, p_lane smallint, p_id text, p_fingerprint bytea, p_visible_start text, p_visible_end text, p_overlap_seconds integer
) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_key keys;
BEGIN
  PERFORM require_lane(p_lane);
  v_key := lock_active_key(p_lane, p_id);
  PERFORM replace_secret(v_key, p_fingerprint, p_visible_start, p_visible_end, p_overlap_seconds);
  PERFORM log_change(p_act, p_lane, p_id, v_key.account_id);
  RETURN QUERY SELECT * FROM view_keys(p_lane, '', p_id, '', 1);
END
$$;
