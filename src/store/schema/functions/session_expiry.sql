-- When a session ends: 8 hours after the sign-in, or 1 hour after its last use.
CREATE OR REPLACE FUNCTION session_expiry(p_session operator_sessions) RETURNS timestamptz
  LANGUAGE sql STABLE
  RETURN least((p_session).created_at + interval '8 hours', (p_session).used_at + interval '1 hour');
