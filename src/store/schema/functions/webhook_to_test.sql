-- What a test of a webhook needs, in any state of it. p_act is NULL for a key of the account.
CREATE OR REPLACE FUNCTION webhook_to_test(p_act text, p_lane smallint, p_account_id text, p_id text)
  RETURNS TABLE (account_id text, url text, secrets text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_webhook constant webhooks := lock_webhook(p_lane, p_account_id, p_id);
BEGIN
  IF p_act IS NOT NULL THEN
    PERFORM log_change(p_act, p_lane, p_id, v_webhook.account_id);
  END IF;
  RETURN QUERY SELECT v_webhook.account_id, v_webhook.url,
    secrets_of_webhook(v_webhook.secret, v_webhook.previous_secrets, v_webhook.previous_expires_at);
END
$$;
