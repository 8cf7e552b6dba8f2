-- Changes the fields of a webhook that p_changes has: url, description, types, state. A webhook that is enabled, or gets a new address,
-- starts anew: earlier failures do not count, and a pause that the old address asked for ends.
CREATE OR REPLACE FUNCTION update_webhook(p_act text, p_lane smallint, p_account_id text, p_id text, p_changes text)
  RETURNS SETOF webhook_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_old constant webhooks := lock_webhook(p_lane, p_account_id, p_id);
  v_new constant webhooks := jsonb_populate_record(v_old, p_changes::jsonb);
BEGIN
  UPDATE webhooks w SET url = v_new.url, description = v_new.description, types = v_new.types, state = v_new.state,
      disabled_reason = CASE WHEN v_new.state = 'disabled' THEN w.disabled_reason ELSE '' END,
      enabled_at = CASE WHEN v_new.state = 'enabled' AND (v_old.state, v_old.url) <> ('enabled', v_new.url) THEN clock_timestamp()
        ELSE w.enabled_at END
    WHERE w.lane = p_lane AND w.id = p_id;
  -- An insert, because it waits for a claim that has created the queue and finds the webhook paused.
  IF (v_new.state, v_new.url) <> (v_old.state, v_old.url) THEN
    INSERT INTO webhook_queues AS q (lane, webhook_id, is_of_operators, due_at)
      VALUES (p_lane, p_id, p_id LIKE 'who\_%', 'infinity')
      ON CONFLICT ON CONSTRAINT webhook_queues_pkey DO UPDATE SET blocked_until = '-infinity';
  END IF;
  PERFORM log_webhook_change(p_act, p_lane, p_id, v_old.account_id);
  RETURN QUERY SELECT * FROM view_webhooks(p_lane, v_old.account_id, p_id);
END
$$;
