-- A key of an account that is about to change. Refuses one that is revoked or has expired. The caller holds the lane.
CREATE OR REPLACE FUNCTION lock_active_key(p_lane smallint, p_id text) RETURNS keys
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key keys;
BEGIN
  SELECT * INTO v_key FROM keys WHERE lane = p_lane AND id = p_id FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM refuse('not_found', 'There is no such key.');
  ELSIF v_key.revoked_at IS NOT NULL THEN
    PERFORM refuse('invalid_argument', 'must be an active key, and this one was revoked', '{"field":"key_id"}');
  ELSIF v_key.expires_at <= clock_timestamp() THEN
    PERFORM refuse('invalid_argument', 'must be an active key, and this one has expired', '{"field":"key_id"}');
  END IF;
  RETURN v_key;
END
$$;
