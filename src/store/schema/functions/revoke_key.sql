-- Revokes a key of an account permanently. Does not wait for the lock of the lane, which batches hold. A repetition keeps the time of the first revocation.
CREATE OR REPLACE FUNCTION revoke_key(p_lane smallint, p_account_id text, p_id text) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  PERFORM require_lane(p_lane);
  UPDATE keys SET revoked_at = v_now
    WHERE lane = p_lane AND id = p_id AND account_id = p_account_id AND revoked_at IS NULL;
  IF FOUND THEN
    PERFORM write_key_event(p_lane, p_id, 'key.revoked', '{"by":"key"}');
  END IF;
  RETURN QUERY SELECT * FROM view_keys(p_lane, p_account_id, p_id, '', 1);
END
$$;
