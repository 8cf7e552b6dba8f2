-- Ends a session of a person, or with a NULL person the session of an operator who views the page. An unknown one is ignored.
CREATE OR REPLACE FUNCTION end_page_session(p_person_id text, p_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  DELETE FROM page_sessions s WHERE s.id = p_id AND s.person_id IS NOT DISTINCT FROM p_person_id;
END
$$;
