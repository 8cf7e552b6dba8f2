-- What a function that makes a change does first: it proves the right of its caller, or refuses.

-- Proves that the caller of a change still has the right to make it, and returns the calling key; a row of NULLs for others. Each
-- function that writes for a caller calls this first: a request can arrive long after the gate. What withdraws a right takes the
-- same locks, so the right stays until the commit. The server itself compares break-glass tokens, which no table has.
CREATE OR REPLACE FUNCTION prove(p_caller caller, p_lane smallint DEFAULT no_lane()) RETURNS keys
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key keys;
BEGIN
  IF p_lane <> no_lane() THEN
    PERFORM lock_lane(p_lane);
  END IF;
  CASE p_caller.kind
    WHEN 'key' THEN v_key := prove_key(p_caller, p_lane);
    WHEN 'member' THEN
      PERFORM prove_person(p_caller);
      PERFORM prove_member(p_caller, p_lane);
    WHEN 'person' THEN PERFORM prove_person(p_caller);
    WHEN 'operator', 'operator_session' THEN PERFORM prove_operator(p_caller);
    WHEN 'break_glass', 'server' THEN NULL;
  END CASE;
  RETURN v_key;
END
$$;

-- The calling key; refuses if admission would refuse it now, except by its rate. The reasons are those of the gate, in its order.
-- The lane is locked, which everything that changes a key or suspends an account locks too.
CREATE OR REPLACE FUNCTION prove_key(p_caller caller, p_lane smallint) RETURNS keys
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key keys;
  v_row record;
BEGIN
  SELECT k AS key, k.expires_at, array_to_string(k.allowed_cidrs, ',') AS cidrs,
         a.suspended_at IS NOT NULL AND NOT p_caller.while_suspended AS is_suspended
    INTO v_row FROM keys k JOIN accounts a ON a.lane = k.lane AND a.id = k.account_id
    WHERE k.lane = p_lane AND k.id = p_caller.id AND k.account_id = p_caller.account_id;
  v_key := v_row.key;
  IF v_key.fingerprint IS DISTINCT FROM p_caller.fingerprint THEN
    SELECT least(v_row.expires_at, s.expires_at) INTO v_row.expires_at FROM previous_secrets s
      WHERE s.lane = p_lane AND s.fingerprint = p_caller.fingerprint AND s.key_id = v_key.id;
  END IF;
  IF NOT FOUND THEN
    PERFORM refuse('invalid_api_key');
  ELSIF v_key.revoked_at IS NOT NULL THEN
    PERFORM refuse('revoked_api_key');
  ELSIF v_row.expires_at <= clock_timestamp() THEN
    PERFORM refuse('expired_api_key');
  ELSIF v_row.is_suspended THEN
    PERFORM refuse('account_suspended');
  ELSIF v_row.cidrs IS DISTINCT FROM p_caller.cidrs THEN
    PERFORM refuse('address_not_allowed',
      'The addresses from which the API key can be used were changed during the call. Repeat the call.');
  ELSIF p_caller.scope & ~v_key.scopes <> 0 THEN
    PERFORM refuse('insufficient_scope', format('The API key lacks the scope "%s".', names_of_scopes(p_caller.scope & ~v_key.scopes)),
      jsonb_build_object('scope', names_of_scopes(p_caller.scope & ~v_key.scopes)));
  END IF;
  RETURN v_key;
END
$$;

-- Refuses a person who is no longer a member of the account, or has another role there than the one that the server checked.
CREATE OR REPLACE FUNCTION prove_member(p_caller caller, p_lane smallint) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_role text;
BEGIN
  SELECT m.role INTO v_role FROM members m
    WHERE m.lane = p_lane AND m.account_id = p_caller.account_id AND m.person_id = p_caller.id FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    PERFORM refuse('not_found', 'There is no such account.');
  ELSIF v_role IS DISTINCT FROM p_caller.role THEN
    PERFORM refuse('insufficient_role', 'Your role in the account was changed during the call. Repeat the call.');
  ELSIF NOT p_caller.while_suspended AND EXISTS (
      SELECT 1 FROM accounts a WHERE a.lane = p_lane AND a.id = p_caller.account_id AND a.suspended_at IS NOT NULL) THEN
    PERFORM refuse('account_suspended');
  END IF;
END
$$;

-- Refuses a caller whose session of the customer page has ended. The server calls it alone when it keeps the session locked for a
-- change in another cell.
CREATE OR REPLACE FUNCTION prove_person(p_caller caller) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM 1 FROM page_sessions s
    WHERE s.fingerprint = p_caller.fingerprint AND NOT s.is_link AND coalesce(s.person_id, '') = p_caller.id
      AND page_session_expiry(ROW(s.*)::page_sessions) > clock_timestamp() FOR KEY SHARE;
  PERFORM refuse('invalid_session', 'The session has expired or was ended. Sign in again.')
    WHERE NOT FOUND AND p_caller.fingerprint IS NOT NULL;
END
$$;

-- Refuses an operator who was revoked, whose session has ended, or who has another role than the one that the server checked.
-- Each cell has the operators; sessions are in the first cell, where the server calls this alone to keep one locked for a change
-- in another cell.
CREATE OR REPLACE FUNCTION prove_operator(p_caller caller) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_operator operators;
BEGIN
  SELECT o.* INTO v_operator FROM operators o WHERE o.id = p_caller.id AND o.revoked_at IS NULL FOR SHARE;
  IF NOT FOUND OR p_caller.kind = 'operator' AND v_operator.fingerprint IS DISTINCT FROM p_caller.fingerprint THEN
    PERFORM refuse('invalid_operator_token');
  ELSIF v_operator.role::text IS DISTINCT FROM p_caller.role THEN
    PERFORM refuse('insufficient_role', 'Your role was changed during the call. Repeat the call.');
  END IF;
  IF p_caller.kind = 'operator_session' AND p_caller.fingerprint IS NOT NULL THEN
    PERFORM 1 FROM operator_sessions s
      WHERE s.fingerprint = p_caller.fingerprint AND s.operator_id = p_caller.id
        AND session_expiry(ROW(s.*)::operator_sessions) > clock_timestamp() FOR KEY SHARE;
    PERFORM refuse('invalid_operator_token', 'The session has expired or was ended. Sign in again.') WHERE NOT FOUND;
  END IF;
END
$$;

-- Raises a refusal for the caller, by its reason in the server's error table. The server formats an amount such as {5 micros}.
-- PostgreSQL logs the texts, so they contain only names of fields, numbers and stored values, never a value of the call.
CREATE OR REPLACE FUNCTION refuse(p_reason text, p_message text DEFAULT '', p_metadata jsonb DEFAULT '{}') RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'VX000', MESSAGE = p_reason, DETAIL = p_message, HINT = p_metadata::text;
END
$$;

-- Who made a change, as events name it.
CREATE OR REPLACE FUNCTION actor_kind(p_caller caller) RETURNS text
  LANGUAGE sql IMMUTABLE
  RETURN CASE WHEN p_caller.kind IN ('key', 'member') THEN p_caller.kind ELSE 'operator' END;
