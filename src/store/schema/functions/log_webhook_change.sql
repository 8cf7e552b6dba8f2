-- Logs a change of a webhook, and shares it with the other cells if the webhook is one of operators.
CREATE OR REPLACE FUNCTION log_webhook_change(p_caller caller, p_lane smallint, p_id text, p_account_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM log_change(p_caller, p_lane, p_id, p_account_id);
  IF p_lane = no_lane() THEN
    PERFORM change_shared_data();
  END IF;
END
$$;
