-- Revokes an operator permanently and ends its sessions. A repetition keeps the time of the first revocation.
CREATE OR REPLACE FUNCTION revoke_operator(p_caller caller, p_id text) RETURNS SETOF operator_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  -- If two admins revoke each other at the same time, one remains.
  LOCK TABLE operators IN SHARE ROW EXCLUSIVE MODE;
  PERFORM prove(p_caller);
  UPDATE operators SET revoked_at = v_now WHERE id = p_id AND revoked_at IS NULL;
  IF FOUND THEN
    PERFORM keep_an_admin(role) FROM operators WHERE id = p_id;
    DELETE FROM operator_sessions s WHERE s.operator_id = p_id;
    DELETE FROM page_sessions s WHERE s.operator_id = p_id;
    PERFORM log_change(p_caller, no_lane(), p_id, '');
    PERFORM change_shared_data();
  END IF;
  RETURN QUERY SELECT * FROM view_operators(p_id, '', 1);
END
$$;
