-- Whether a key can be used, or why not.
CREATE OR REPLACE FUNCTION key_state(
  p_revoked_at timestamptz, p_expires_at timestamptz, p_suspended_at timestamptz, p_now timestamptz
) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN p_revoked_at IS NOT NULL THEN 'revoked' WHEN p_expires_at <= p_now THEN 'expired'
              WHEN p_suspended_at IS NOT NULL THEN 'suspended' ELSE 'active' END;
