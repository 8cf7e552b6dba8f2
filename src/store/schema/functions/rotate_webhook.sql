-- Gives a webhook a new secret. Deliveries are signed with it, and for p_overlap_seconds with those that signed until now, the last three:
-- a receiver has one of these if the response of an earlier rotation was lost.
CREATE OR REPLACE FUNCTION rotate_webhook(p_caller caller, p_lane smallint, p_account_id text, p_id text, p_overlap_seconds integer)
  RETURNS webhook_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_old constant webhooks := lock_webhook(p_lane, p_account_id, p_id);
  v_secret constant text := new_webhook_secret();
  v_view webhook_view;
BEGIN
  UPDATE webhooks w SET secret = v_secret,
      previous_secrets = array_to_string((string_to_array(
        secrets_of_webhook(w.secret, w.previous_secrets, w.previous_expires_at), ' '))[:3], ' '),
      previous_expires_at = clock_timestamp() + make_interval(secs => p_overlap_seconds)
    WHERE w.lane = p_lane AND w.id = p_id;
  PERFORM log_webhook_change(p_caller, p_lane, p_id, v_old.account_id);
  SELECT * INTO v_view FROM view_webhooks(p_lane, v_old.account_id, p_id);
  v_view.secret := v_secret;
  RETURN v_view;
END
$$;
