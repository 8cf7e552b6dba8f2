-- Disables a webhook, and writes the event about it, unless it was changed since the attempt that decided was claimed.
CREATE OR REPLACE FUNCTION disable_webhook(p_lane smallint, p_id text, p_revision integer, p_reason text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_webhook webhooks;
BEGIN
  IF p_lane <> no_lane() THEN
    PERFORM require_lane(p_lane);
  END IF;
  UPDATE webhooks w SET state = 'disabled', disabled_reason = p_reason
    WHERE w.lane = p_lane AND w.id = p_id AND w.revision = p_revision AND w.state <> 'disabled'
      AND (p_reason = 'gone' OR w.enabled_at < clock_timestamp() - interval '5 days')
    RETURNING w.* INTO v_webhook;
  IF FOUND THEN
    PERFORM write_event(p_lane, v_webhook.account_id, 'webhook.disabled',
      jsonb_build_object('webhook_id', p_id, 'url', v_webhook.url, 'reason', p_reason));
    -- A server finds the queues, and lists what is pending as failed.
    INSERT INTO woken_queues (lane, webhook_id) SELECT q.lane, q.webhook_id FROM webhook_queues q WHERE q.webhook_id = p_id;
    IF p_lane = no_lane() THEN
      PERFORM change_shared_data();
    END IF;
  END IF;
END
$$;
