-- Deletes an invitation of an account. An unknown one is ignored.
CREATE OR REPLACE FUNCTION delete_invitation(p_caller caller, p_lane smallint, p_account_id text, p_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  DELETE FROM invitations i WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.id = p_id;
  IF FOUND THEN
    PERFORM log_change(p_caller, p_lane, p_id, p_account_id);
  END IF;
END
$$;
