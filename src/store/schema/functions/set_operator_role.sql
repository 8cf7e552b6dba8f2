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
  IF v_operator.revoked_at IS NOT NULL THEN
    PERFORM refuse('invalid_argument', 'must be an active operator, and this one was revoked', '{"field":"operator_id"}');
  END IF;
  IF v_operator.role <> v_role THEN
    PERFORM log_change(p_caller, no_lane(), p_id, '');
    UPDATE operators o SET role = v_role WHERE o.id = p_id;
    PERFORM keep_an_admin(v_operator.role);
    PERFORM change_shared_data();
  END IF;
  RETURN QUERY SELECT * FROM view_operators(p_id, '', 1);
END
$$;
