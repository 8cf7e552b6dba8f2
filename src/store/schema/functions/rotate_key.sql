-- Gives the calling key, or a key that it created, a new secret.
CREATE OR REPLACE FUNCTION rotate_key(
  p_lane smallint, p_account_id text, p_caller_id text, p_id text, p_fingerprint bytea, p_visible_start text, p_visible_end text,
  p_overlap_seconds integer
) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account constant accounts := lock_account(p_lane, p_account_id);
  v_caller constant keys := lock_parent_key(p_lane, v_account.id, p_caller_id);
BEGIN
  PERFORM replace_secret(lock_descendant_key(p_lane, v_caller, p_id), p_fingerprint, p_visible_start, p_visible_end,
    p_overlap_seconds);
  RETURN QUERY SELECT * FROM view_keys(p_lane, p_account_id, p_id, '', 1);
END
$$;
