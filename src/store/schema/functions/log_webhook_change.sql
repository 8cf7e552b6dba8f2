-- Logs a change of a webhook by an operator or a member, and shares it with the other cells if the webhook is one of operators. p_act is NULL for a
-- change by a key of the account.
CREATE OR REPLACE FUNCTION log_webhook_change(p_act text, p_lane smallint, p_id text, p_account_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_act IS NOT NULL THEN
    PERFORM log_change(p_act, p_lane, p_id, p_account_id);
  END IF;
  IF p_lane = no_lane() THEN
    PERFORM change_shared_data();
  END IF;
END
$$;
