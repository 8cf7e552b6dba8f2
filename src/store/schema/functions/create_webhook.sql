-- Creates a webhook of an account, or with an empty account one of operators. An account, like the operators, has at most p_max.
CREATE OR REPLACE FUNCTION create_webhook(
  p_caller caller, p_lane smallint, p_account_id text, p_id text, p_url text, p_description text, p_types text, p_max integer
) RETURNS webhook_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_secret constant text := new_webhook_secret();
  v_view webhook_view;
BEGIN
  IF p_lane <> no_lane() THEN
    PERFORM require_open_account(p_lane, p_account_id);
  END IF;
  -- Before the webhooks are counted: the locks of the log order the creations of operators.
  PERFORM log_webhook_change(p_caller, p_lane, p_id, p_account_id);
  IF (SELECT count(*) FROM webhooks w WHERE w.lane = p_lane AND w.account_id = p_account_id) >= p_max THEN
    PERFORM refuse('webhook_limit_reached', format('There can be at most %s webhooks. Delete one that is not used.', p_max));
  END IF;
  INSERT INTO webhooks (lane, id, account_id, url, description, types, enabled_at, secret, created_at)
    VALUES (p_lane, p_id, p_account_id, p_url, p_description, string_to_array(p_types, ','), clock_timestamp(), v_secret,
      clock_timestamp());
  SELECT * INTO v_view FROM view_webhooks(p_lane, p_account_id, p_id);
  v_view.secret := v_secret;
  RETURN v_view;
END
$$;
