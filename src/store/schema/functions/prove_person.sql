-- Refuses a caller whose session of the customer page has ended. The server calls it alone when it keeps the session locked for a change
-- in another cell.
CREATE OR REPLACE FUNCTION prove_person(p_caller caller) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM 1 FROM page_sessions s
    WHERE s.fingerprint = p_caller.fingerprint AND NOT s.is_link AND coalesce(s.person_id, '') = p_caller.id
      AND page_session_expiry(ROW(s.*)::page_sessions) > clock_timestamp() FOR KEY SHARE;
  IF NOT FOUND AND p_caller.fingerprint IS NOT NULL THEN
    PERFORM refuse('invalid_session', 'The session has expired or was ended. Sign in again.');
  END IF;
END
$$;
