-- Ends a session of the caller: of a person, or of an operator who views the page. An unknown one is ignored.
CREATE OR REPLACE FUNCTION end_page_session(p_caller caller, p_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_person_id constant text := nullif(p_caller.id, '');
  -- In one order, and before the proof locks one of them: two sessions can end each other.
  v_locked constant text[] := ARRAY(SELECT s.id FROM page_sessions s
    WHERE s.person_id IS NOT DISTINCT FROM v_person_id AND (s.id = p_id OR s.fingerprint = p_caller.fingerprint)
    ORDER BY s.id FOR UPDATE);
BEGIN
  PERFORM prove(p_caller);
  DELETE FROM page_sessions s WHERE s.id = p_id AND s.person_id IS NOT DISTINCT FROM v_person_id;
END
$$;
