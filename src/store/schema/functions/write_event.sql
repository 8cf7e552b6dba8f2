-- Writes an event and its deliveries in the transaction of its cause. The row of the account's last event orders its events. A
-- transaction locks it after rows of keys and before the chain of the operator log.
CREATE OR REPLACE FUNCTION write_event(p_lane smallint, p_account_id text, p_type text, p_data jsonb) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_end event_ends;
  v_id text;
  v_webhook_ids text[];
BEGIN
  INSERT INTO event_ends AS e (lane, account_id, seq, created_at) VALUES (p_lane, p_account_id, 1, clock_timestamp())
    ON CONFLICT ON CONSTRAINT event_ends_pkey DO UPDATE
      SET seq = e.seq + 1, created_at = greatest(excluded.created_at, e.created_at + interval '1 microsecond')
    RETURNING * INTO v_end;
  INSERT INTO events (lane, account_id, seq, id, type, created_at, data)
    VALUES (p_lane, p_account_id, v_end.seq, event_id(p_lane, v_end.created_at), p_type, v_end.created_at, p_data)
    RETURNING id INTO v_id;
  v_webhook_ids := ARRAY(
    SELECT w.id FROM webhooks w
    WHERE w.lane IN (p_lane, no_lane()) AND w.account_id IN (p_account_id, '') AND w.state <> 'disabled'
      AND (w.types = '{}' OR p_type = ANY (w.types)));
  IF v_webhook_ids <> '{}' THEN
    INSERT INTO deliveries (lane, account_id, seq, webhook_id, event_id, created_at, due_at)
      SELECT p_lane, p_account_id, v_end.seq, w.id, v_id, v_end.created_at, v_end.created_at FROM unnest(v_webhook_ids) w (id);
    INSERT INTO woken_queues (lane, webhook_id) SELECT p_lane, w.id FROM unnest(v_webhook_ids) w (id);
  END IF;
END
$$;
