-- Sessions: of persons on the page of an account, and of operators in the console.

-- Starts a session of the person with this identity, who is p_new_id if the identity is new. Deletes some sessions that ended,
-- some people who joined no account within 30 days, and what is no longer shown of closed accounts.
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

-- The session of the customer page with this fingerprint, if it has not ended. Records the use once a minute. The page that an
-- operator views is closed when the operator is revoked or becomes a viewer.
CREATE OR REPLACE FUNCTION find_page_session(p_fingerprint bytea)
  RETURNS TABLE (id text, person_id text, email text, operator_name text, account_id text, expires_at timestamptz,
    issuer text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_session page_sessions;
BEGIN
  SELECT s.* INTO v_session FROM page_sessions s
    WHERE s.fingerprint = p_fingerprint AND NOT s.is_link AND page_session_expiry(ROW(s.*)::page_sessions) > v_now;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF v_session.used_at < v_now - interval '1 minute' THEN
    UPDATE page_sessions s SET used_at = v_now WHERE s.fingerprint = p_fingerprint RETURNING s.* INTO v_session;
    IF NOT FOUND THEN
      RETURN;
    END IF;
  END IF;
  RETURN QUERY SELECT v_session.id, coalesce(v_session.person_id, ''), coalesce(p.email, ''), v_session.operator_name,
      coalesce(v_session.account_id, ''), page_session_expiry(v_session), coalesce(p.issuer, '')
    FROM (SELECT) one LEFT JOIN people p ON p.id = v_session.person_id LEFT JOIN operators o ON o.id = v_session.operator_id
    WHERE o.revoked_at IS NULL AND o.role IS DISTINCT FROM 'viewer';
END
$$;

-- When a session of the customer page ends: 30 days after the sign-in, or 7 days after its last use. A view of an operator ends
-- after an hour, and the link to it after a minute.
CREATE OR REPLACE FUNCTION page_session_expiry(p_session page_sessions) RETURNS timestamptz
  LANGUAGE sql STABLE
  RETURN CASE WHEN (p_session).is_link THEN (p_session).created_at + interval '1 minute'
    WHEN (p_session).operator_id IS NOT NULL THEN (p_session).created_at + interval '1 hour'
    ELSE least((p_session).created_at + interval '30 days', (p_session).used_at + interval '7 days') END;

-- The sessions of a person, the one with the latest use first.
CREATE OR REPLACE FUNCTION list_page_sessions(p_person_id text)
  RETURNS TABLE (id text, created_at timestamptz, used_at timestamptz, user_agent text, address text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT s.id, s.created_at, s.used_at, s.user_agent, s.address FROM page_sessions s
    WHERE s.person_id = p_person_id AND page_session_expiry(ROW(s.*)::page_sessions) > clock_timestamp()
    ORDER BY s.used_at DESC, s.id
$$;

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

-- Creates the link with which an operator views the page of an account, in the first cell.
CREATE OR REPLACE FUNCTION open_customer_page(
  p_caller caller, p_account_id text, p_session_id text, p_fingerprint bytea
) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller);
  v_now constant timestamptz := clock_timestamp();
BEGIN
  INSERT INTO page_sessions
      (fingerprint, id, operator_id, operator_name, account_id, is_link, created_at, used_at, user_agent, address)
    VALUES (p_fingerprint, p_session_id, p_caller.id, p_caller.name, p_account_id, true, v_now, v_now, '', '');
END
$$;

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

-- Starts a session of the operator with this identity; returns nothing without one. The first sign-in binds the identity to the
-- operator with this verified e-mail address; afterwards only issuer and subject identify the operator.
CREATE OR REPLACE FUNCTION sign_in_operator(
  p_issuer text, p_subject text, p_email text, p_fingerprint bytea, p_request_id text
) RETURNS TABLE (id text, name text, role operator_role)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  c_max_sessions constant integer := 10;
  v_now constant timestamptz := clock_timestamp();
  v_operator operators;
  v_details json := '{}';
  v_expired bytea[];
BEGIN
  -- The lock keeps the operator from being revoked before the session is stored.
  SELECT o.* INTO v_operator FROM operators o
    WHERE o.issuer = p_issuer AND o.subject = p_subject AND o.revoked_at IS NULL FOR UPDATE;
  IF NOT FOUND AND p_email <> '' THEN
    UPDATE operators o SET issuer = p_issuer, subject = p_subject
      WHERE lower(o.email COLLATE "C") = lower(p_email COLLATE "C") AND o.email <> '' AND o.subject IS NULL
        AND o.revoked_at IS NULL
      RETURNING o.* INTO v_operator;
    v_details := '{"identity":"bound"}';
    IF NOT FOUND THEN
      -- Another sign-in of the identity may have bound it in the meantime.
      SELECT o.* INTO v_operator FROM operators o
        WHERE o.issuer = p_issuer AND o.subject = p_subject AND o.revoked_at IS NULL FOR UPDATE;
      v_details := '{}';
    END IF;
  END IF;
  IF v_operator.id IS NULL THEN
    RETURN;
  END IF;
  v_expired := ARRAY(
    SELECT s.fingerprint FROM operator_sessions s WHERE session_expiry(ROW(s.*)::operator_sessions) <= v_now);
  DELETE FROM operator_sessions s WHERE s.fingerprint = ANY (v_expired);
  DELETE FROM operator_sessions s WHERE s.fingerprint IN (
    SELECT o.fingerprint FROM operator_sessions o WHERE o.operator_id = v_operator.id
    ORDER BY o.created_at DESC OFFSET c_max_sessions - 1);
  INSERT INTO operator_sessions VALUES (p_fingerprint, v_operator.id, v_now, v_now);
  PERFORM log_session(v_operator, 'SignIn', v_details, p_request_id);
  RETURN QUERY SELECT v_operator.id, v_operator.name, v_operator.role;
END
$$;

-- The active operator of this session, and when the session ends. With p_is_use, records the use once a minute.
CREATE OR REPLACE FUNCTION find_session(p_fingerprint bytea, p_is_use boolean)
  RETURNS TABLE (id text, name text, role operator_role, expires_at timestamptz)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_session operator_sessions;
BEGIN
  SELECT s.* INTO v_session FROM operator_sessions s JOIN operators o ON o.id = s.operator_id
    WHERE s.fingerprint = p_fingerprint AND session_expiry(ROW(s.*)::operator_sessions) > v_now AND o.revoked_at IS NULL;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF p_is_use AND v_session.used_at < v_now - interval '1 minute' THEN
    -- The operator first, as in all functions that lock both: otherwise a revocation could deadlock.
    UPDATE operators o SET last_used_at = v_now WHERE o.id = v_session.operator_id AND o.revoked_at IS NULL;
    IF NOT FOUND THEN
      RETURN;
    END IF;
    UPDATE operator_sessions s SET used_at = v_now WHERE s.fingerprint = p_fingerprint RETURNING s.* INTO v_session;
  END IF;
  RETURN QUERY SELECT o.id, o.name, o.role, session_expiry(v_session) FROM operators o
    WHERE o.id = v_session.operator_id;
END
$$;

-- Ends a session. A session that does not exist, or has expired, is ignored.
CREATE OR REPLACE FUNCTION end_session(p_fingerprint bytea, p_request_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_session operator_sessions;
  v_operator operators;
BEGIN
  DELETE FROM operator_sessions s WHERE s.fingerprint = p_fingerprint RETURNING s.* INTO v_session;
  IF session_expiry(v_session) > clock_timestamp() THEN
    SELECT o.* INTO v_operator FROM operators o WHERE o.id = v_session.operator_id;
    PERFORM log_session(v_operator, 'SignOut', '{}', p_request_id);
  END IF;
END
$$;

-- When a session ends: 8 hours after the sign-in, or 1 hour after its last use.
CREATE OR REPLACE FUNCTION session_expiry(p_session operator_sessions) RETURNS timestamptz
  LANGUAGE sql STABLE
  RETURN least((p_session).created_at + interval '8 hours', (p_session).used_at + interval '1 hour');

-- Records a sign-in or a sign-out of an operator.
CREATE OR REPLACE FUNCTION log_session(p_operator operators, p_method text, p_details json, p_request_id text) RETURNS void
  LANGUAGE sql
AS $$
  SELECT append_operator_event(
    json_populate_record(NULL::caller, json_build_object('id', p_operator.id, 'name', p_operator.name, 'method', p_method, 'reason', '',
      'details', p_details, 'request_id', p_request_id)),
    no_lane(), p_operator.id, '', 'ok')
$$;
