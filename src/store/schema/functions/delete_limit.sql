-- Removes a limit of an account, a key or a plan for an operator, or of an account for a member. Running calls lose nothing: what they
-- hold of it is forgotten.
CREATE OR REPLACE FUNCTION delete_limit(p_caller caller, p_lane smallint, p_owner_id text, p_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account_id constant text := lock_limit_owner(p_lane, p_owner_id);
BEGIN
  IF NOT remove_limit(p_lane, v_account_id, p_owner_id, p_id, actor_kind(p_caller)) THEN
    PERFORM refuse('not_found', 'The owner has no such limit.');
  END IF;
  PERFORM log_change(p_caller, p_lane, p_owner_id, v_account_id);
  IF p_lane = no_lane() THEN
    PERFORM change_shared_data();
  ELSE
    PERFORM mark_limited(p_lane, v_account_id, p_owner_id);
  END IF;
END
$$;
