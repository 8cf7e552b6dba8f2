-- Operators and their tokens.

-- Creates an operator. Its name is unique among the active operators, and so is its e-mail address, which may be empty.
CREATE OR REPLACE FUNCTION create_operator(
  p_caller caller, p_id text, p_name text, p_role text, p_email text, p_fingerprint bytea
) RETURNS SETOF operator_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller);
  INSERT INTO operators (id, name, role, email, fingerprint, created_at)
    VALUES (p_id, p_name, p_role::operator_role, p_email, p_fingerprint, clock_timestamp())
    ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    PERFORM refuse('invalid_argument', 'is the name of another active operator', '{"field":"name"}')
      WHERE EXISTS (SELECT 1 FROM operators o WHERE o.name = p_name AND o.revoked_at IS NULL);
    PERFORM refuse('invalid_argument', 'is the address of another active operator', '{"field":"email"}');
  END IF;
  PERFORM log_shared_change(p_caller, no_lane(), p_id, '');
  RETURN QUERY SELECT * FROM view_operators(p_id, '', 1);
END
$$;

-- The active operator with this fingerprint. Records the use of the token once a minute.
CREATE OR REPLACE FUNCTION find_operator(p_fingerprint bytea) RETURNS TABLE (id text, name text, role operator_role)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_operator operators;
BEGIN
  SELECT o.* INTO v_operator FROM operators o WHERE o.fingerprint = p_fingerprint AND o.revoked_at IS NULL;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF v_operator.last_used_at IS NULL OR v_operator.last_used_at < v_now - interval '1 minute' THEN
    UPDATE operators o SET last_used_at = v_now WHERE o.id = v_operator.id;
  END IF;
  RETURN QUERY SELECT v_operator.id, v_operator.name, v_operator.role;
END
$$;

-- A page of operators, newest first, or the one that p_id names. An empty p_before means the first page.
CREATE OR REPLACE FUNCTION view_operators(p_id text, p_before text, p_limit integer) RETURNS SETOF operator_view
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT o.id, o.name, o.role, CASE WHEN o.revoked_at IS NULL THEN 'active' ELSE 'revoked' END, o.created_at,
         o.revoked_at, o.last_used_at, o.email, o.subject IS NOT NULL
  FROM operators o
  WHERE (p_id = '' OR o.id = p_id) AND (p_before = '' OR o.id < p_before)
  ORDER BY o.id DESC LIMIT p_limit
$$;

-- Changes the role of an active operator, also for its sessions and for calls that have begun.
CREATE OR REPLACE FUNCTION set_operator_role(p_caller caller, p_id text, p_role text) RETURNS SETOF operator_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_role constant operator_role := p_role::operator_role;
  v_operator operators;
BEGIN
  -- If two admins lower each other at the same time, one remains.
  LOCK TABLE operators IN SHARE ROW EXCLUSIVE MODE;
  PERFORM prove(p_caller);
  SELECT o.* INTO v_operator FROM operators o WHERE o.id = p_id;
  PERFORM refuse('invalid_argument', 'must be an active operator, and this one was revoked', '{"field":"operator_id"}')
    WHERE v_operator.revoked_at IS NOT NULL;
  IF v_operator.role <> v_role THEN
    UPDATE operators o SET role = v_role WHERE o.id = p_id;
    PERFORM keep_an_admin(v_operator.role);
    PERFORM log_shared_change(p_caller, no_lane(), p_id, '');
  END IF;
  RETURN QUERY SELECT * FROM view_operators(p_id, '', 1);
END
$$;

-- Revokes an operator permanently and ends its sessions. A repetition keeps the time of the first revocation.
CREATE OR REPLACE FUNCTION revoke_operator(p_caller caller, p_id text) RETURNS SETOF operator_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  -- If two admins revoke each other at the same time, one remains.
  LOCK TABLE operators IN SHARE ROW EXCLUSIVE MODE;
  PERFORM prove(p_caller);
  UPDATE operators SET revoked_at = clock_timestamp() WHERE id = p_id AND revoked_at IS NULL;
  IF FOUND THEN
    PERFORM keep_an_admin(role) FROM operators WHERE id = p_id;
    DELETE FROM operator_sessions s WHERE s.operator_id = p_id;
    DELETE FROM page_sessions s WHERE s.operator_id = p_id;
    PERFORM log_shared_change(p_caller, no_lane(), p_id, '');
  END IF;
  RETURN QUERY SELECT * FROM view_operators(p_id, '', 1);
END
$$;

-- Refuses to take the role admin from the last operator that has it. The caller holds the lock of the table.
CREATE OR REPLACE FUNCTION keep_an_admin(p_role operator_role) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM refuse('last_admin')
    WHERE p_role = 'admin' AND NOT EXISTS (SELECT 1 FROM operators WHERE role = 'admin' AND revoked_at IS NULL);
END
$$;
