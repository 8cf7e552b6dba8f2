-- The sessions of a person, the one with the latest use first.
CREATE OR REPLACE FUNCTION list_page_sessions(p_person_id text)
  RETURNS TABLE (id text, created_at timestamptz, used_at timestamptz, user_agent text, address text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT s.id, s.created_at, s.used_at, s.user_agent, s.address FROM page_sessions s
    WHERE s.person_id = p_person_id AND page_session_expiry(ROW(s.*)::page_sessions) > clock_timestamp()
    ORDER BY s.used_at DESC, s.id;
END
$$;
