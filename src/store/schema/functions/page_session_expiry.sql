-- When a session of the customer page ends: 30 days after the sign-in, or 7 days after its last use. A view of an operator ends after an
-- hour, and the link to it after a minute.
CREATE OR REPLACE FUNCTION page_session_expiry(p_session page_sessions) RETURNS timestamptz
  LANGUAGE sql STABLE
  RETURN CASE WHEN (p_session).is_link THEN (p_session).created_at + interval '1 minute'
    WHEN (p_session).operator_id IS NOT NULL THEN (p_session).created_at + interval '1 hour'
    ELSE least((p_session).created_at + interval '30 days', (p_session).used_at + interval '7 days') END;
