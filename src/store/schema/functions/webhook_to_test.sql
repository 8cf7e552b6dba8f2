-- What a test of a webhook needs, in any state of it.
CREATE OR REPLACE FUNCTION webhook_to_test(p_caller caller, p_lane smallint, p_account_id text, p_id text)
  RETURNS TABLE (account_id text, url text, secrets text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_webhook constant webhooks := lock_webhook(p_lane, p_account_id, p_id);
BEGIN
  PERFORM log_change(p_caller, p_lane, p_id, v_webhook.account_id);
  RETURN QUERY SELECT v_webhook.account_id, v_webhook.url,
    secrets_of_webhook(v_webhook.secret, v_webhook.previous_secrets, v_webhook.previous_expires_at);
END
$$;
