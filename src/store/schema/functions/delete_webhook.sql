-- Deletes a webhook. Its queue is deleted when a server finds it; its deliveries are deleted with their events.
CREATE OR REPLACE FUNCTION delete_webhook(p_caller caller, p_lane smallint, p_account_id text, p_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_old constant webhooks := lock_webhook(p_lane, p_account_id, p_id);
BEGIN
  DELETE FROM webhooks w WHERE w.lane = p_lane AND w.id = p_id;
  INSERT INTO woken_queues (lane, webhook_id) VALUES (p_lane, p_id);
  PERFORM log_webhook_change(p_caller, p_lane, p_id, v_old.account_id);
END
$$;
