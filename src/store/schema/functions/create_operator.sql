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
    IF EXISTS (SELECT 1 FROM operators o WHERE o.name = p_name AND o.revoked_at IS NULL) THEN
      PERFORM refuse('invalid_argument', 'is the name of another active operator', '{"field":"name"}');
    END IF;
    PERFORM refuse('invalid_argument', 'is the address of another active operator', '{"field":"email"}');
  END IF;
  PERFORM log_change(p_caller, no_lane(), p_id, '');
  PERFORM change_shared_data();
  RETURN QUERY SELECT * FROM view_operators(p_id, '', 1);
END
$$;
