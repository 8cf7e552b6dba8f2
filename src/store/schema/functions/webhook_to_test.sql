-- What a test of a webhook needs. A disabled webhook can be tested too.
CREATE OR REPLACE FUNCTION webhook_to_test(p_lane smallint, p_account_id text, p_id text)
  RETURNS TABLE (account_id text, url text, secrets text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT w.account_id, w.url, secrets_of_webhook(w.secret, w.previous_secret, w.previous_expires_at) FROM webhooks w
    WHERE w.lane = p_lane AND w.id = p_id AND p_account_id IN ('', w.account_id);
END
$$;
