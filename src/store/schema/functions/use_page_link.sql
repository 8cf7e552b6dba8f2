-- Turns the link of an operator into a session with another fingerprint. Returns whether the link was valid.
CREATE OR REPLACE FUNCTION use_page_link(p_link bytea, p_fingerprint bytea, p_user_agent text, p_address text)
  RETURNS TABLE (is_valid boolean)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  UPDATE page_sessions s SET fingerprint = p_fingerprint, is_link = false, user_agent = p_user_agent, address = p_address
    WHERE s.fingerprint = p_link AND s.is_link AND page_session_expiry(ROW(s.*)::page_sessions) > clock_timestamp();
  RETURN QUERY SELECT FOUND;
END
$$;
