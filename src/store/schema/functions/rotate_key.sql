-- Gives a key a new secret.
CREATE OR REPLACE FUNCTION rotate_key(
  p_caller caller, p_lane smallint, p_id text, p_fingerprint bytea, p_visible_start text, p_visible_end text, p_overlap_seconds integer
) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_key constant keys := key_to_change(p_caller, p_lane, p_id);
BEGIN
  PERFORM replace_secret(v_key, p_fingerprint, p_visible_start, p_visible_end, p_overlap_seconds);
  PERFORM log_change(p_caller, p_lane, p_id, v_key.account_id);
  RETURN QUERY SELECT * FROM keys_by_id(p_lane, ARRAY[p_id]);
END
$$;
