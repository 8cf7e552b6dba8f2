-- Starts a session of the person with this identity, who is p_new_id if the identity is new. Deletes some sessions that ended, some people
-- who joined no account within 30 days, and what is no longer shown of closed accounts.
CREATE OR REPLACE FUNCTION sign_in_person(
  p_issuer text, p_subject text, p_email text, p_new_id text, p_session_id text, p_fingerprint bytea, p_user_agent text,
  p_address text
) RETURNS TABLE (person_id text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  c_max_sessions constant integer := 20;
  c_max_deleted constant integer := 100;
  v_now constant timestamptz := clock_timestamp();
  v_person_id text;
BEGIN
  INSERT INTO people AS p (id, issuer, subject, email, created_at, signed_in_at)
    VALUES (p_new_id, p_issuer, p_subject, p_email, v_now, v_now)
    ON CONFLICT ON CONSTRAINT people_identity_unique DO UPDATE SET email = excluded.email, signed_in_at = excluded.signed_in_at
    RETURNING p.id INTO v_person_id;
  DELETE FROM page_sessions s WHERE s.fingerprint IN (
    SELECT n.fingerprint FROM page_sessions n WHERE n.fingerprint IN (
      SELECT o.fingerprint FROM page_sessions o WHERE o.person_id = v_person_id
      ORDER BY o.created_at DESC OFFSET c_max_sessions - 1)
    -- A change that holds one of them can wait for the row of the person.
    FOR UPDATE SKIP LOCKED);
  DELETE FROM page_sessions s WHERE s.fingerprint IN (
    SELECT o.fingerprint FROM page_sessions o WHERE o.used_at < v_now - interval '1 hour'
      AND page_session_expiry(ROW(o.*)::page_sessions) <= v_now
    ORDER BY o.used_at LIMIT c_max_deleted FOR UPDATE SKIP LOCKED);
  DELETE FROM people p WHERE p.id IN (
    SELECT o.id FROM people o WHERE o.signed_in_at < v_now - interval '30 days'
      AND NOT EXISTS (SELECT 1 FROM person_accounts a WHERE a.person_id = o.id)
    ORDER BY o.signed_in_at LIMIT c_max_deleted FOR UPDATE SKIP LOCKED);
  DELETE FROM closed_accounts c WHERE (c.person_id, c.account_id) IN (
    SELECT o.person_id, o.account_id FROM closed_accounts o WHERE o.closed_at <= v_now - interval '30 days'
    ORDER BY o.closed_at LIMIT c_max_deleted FOR UPDATE SKIP LOCKED);
  INSERT INTO page_sessions (fingerprint, id, person_id, created_at, used_at, user_agent, address)
    VALUES (p_fingerprint, p_session_id, v_person_id, v_now, v_now, p_user_agent, p_address);
  RETURN QUERY SELECT v_person_id;
END
$$;
