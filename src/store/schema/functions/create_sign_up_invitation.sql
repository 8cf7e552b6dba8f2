-- Creates an invitation to sign up. It belongs to no account.
CREATE OR REPLACE FUNCTION create_sign_up_invitation(p_caller caller, p_id text, p_fingerprint bytea, p_email text)
  RETURNS SETOF sign_up_invitations
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller);
  v_now constant timestamptz := clock_timestamp();
BEGIN
  PERFORM log_change(p_caller, no_lane(), p_id, '');
  DELETE FROM sign_up_invitations i WHERE i.expires_at < v_now - interval '30 days';
  RETURN QUERY INSERT INTO sign_up_invitations (id, fingerprint, email, created_by, created_at, expires_at)
    VALUES (p_id, p_fingerprint, p_email, (p_caller).id, v_now, v_now + interval '7 days') RETURNING *;
END
$$;
