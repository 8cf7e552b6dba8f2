-- Changes the fields of a webhook that p_changes has: url, description, types, state. A webhook that is enabled, or gets a new address,
-- starts anew: earlier failures do not count, a pause that the old address asked for ends, and what is pending is due.
CREATE OR REPLACE FUNCTION update_webhook(p_caller caller, p_lane smallint, p_account_id text, p_id text, p_changes text)
  RETURNS SETOF webhook_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_old constant webhooks := lock_webhook(p_lane, p_account_id, p_id);
  v_new constant webhooks := jsonb_populate_record(v_old, p_changes::jsonb);
  v_starts_anew constant boolean := v_new.url <> v_old.url OR v_new.state = 'enabled' AND v_old.state <> 'enabled';
BEGIN
  UPDATE webhooks w SET url = v_new.url, description = v_new.description, types = v_new.types, state = v_new.state,
      disabled_reason = CASE WHEN v_new.state = 'disabled' THEN w.disabled_reason ELSE '' END,
      enabled_at = CASE WHEN v_starts_anew THEN clock_timestamp() ELSE w.enabled_at END,
      revision = w.revision + v_starts_anew::integer
    WHERE w.lane = p_lane AND w.id = p_id;
  IF v_starts_anew THEN
    -- An insert, because it waits for a claim that has created the queue and finds the webhook paused.
    INSERT INTO webhook_queues (lane, webhook_id, is_of_operators, due_at) VALUES (p_lane, p_id, p_id LIKE 'who\_%', 'infinity')
      ON CONFLICT ON CONSTRAINT webhook_queues_pkey DO NOTHING;
    PERFORM restart_queues(p_lane, ARRAY[p_id]);
  END IF;
  PERFORM log_webhook_change(p_caller, p_lane, p_id, v_old.account_id);
  RETURN QUERY SELECT * FROM view_webhooks(p_lane, v_old.account_id, p_id);
END
$$;
