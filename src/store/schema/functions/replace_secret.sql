-- Gives a key a new secret. Its present one works for p_overlap_seconds more, and the one before it no longer.
CREATE OR REPLACE FUNCTION replace_secret(
  p_key keys, p_fingerprint bytea, p_visible_start text, p_visible_end text, p_overlap_seconds integer
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_until constant timestamptz := clock_timestamp() + make_interval(secs => p_overlap_seconds);
BEGIN
  DELETE FROM previous_secrets WHERE lane = p_key.lane AND key_id = p_key.id;
  INSERT INTO previous_secrets (lane, fingerprint, key_id, visible_start, visible_end, expires_at)
    VALUES (p_key.lane, p_key.fingerprint, p_key.id, p_key.visible_start, p_key.visible_end,
            v_until);
  UPDATE keys SET fingerprint = p_fingerprint, visible_start = p_visible_start, visible_end = p_visible_end
    WHERE lane = p_key.lane AND fingerprint = p_key.fingerprint;
  PERFORM write_key_event(p_key, 'key.rotated', jsonb_build_object('previous_expires_at', v_until));
END
$$;
