-- The key that creates another one. Refuses when it was revoked or has expired since the call was admitted; the lock
-- keeps it from being revoked or changed before the new key is stored.
CREATE OR REPLACE FUNCTION lock_parent_key(p_lane smallint, p_account_id text, p_id text) RETURNS keys
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key keys;
BEGIN
  SELECT * INTO v_key FROM keys WHERE lane = p_lane AND id = p_id AND account_id = p_account_id FOR SHARE;
  IF NOT FOUND THEN
    PERFORM refuse('invalid_api_key');
  ELSIF v_key.revoked_at IS NOT NULL THEN
    PERFORM refuse('revoked_api_key');
  ELSIF v_key.expires_at <= clock_timestamp() THEN
    PERFORM refuse('expired_api_key');
  END IF;
  RETURN v_key;
END
$$;
