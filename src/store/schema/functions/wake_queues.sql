-- Makes queues due that got deliveries.
CREATE OR REPLACE FUNCTION wake_queues(p_now timestamptz) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_places constant tid[] := ARRAY(SELECT i.ctid FROM woken_queues i LIMIT 1000 FOR UPDATE SKIP LOCKED);
BEGIN
  IF v_places = '{}' THEN
    RETURN;
  END IF;
  WITH woken AS (
    DELETE FROM woken_queues w WHERE w.ctid = ANY (v_places) RETURNING w.lane, w.webhook_id
  )
  INSERT INTO webhook_queues AS q (lane, webhook_id, is_of_operators, due_at)
    SELECT DISTINCT w.lane, w.webhook_id, w.webhook_id LIKE 'who\_%', p_now FROM woken w ORDER BY w.lane, w.webhook_id
    ON CONFLICT ON CONSTRAINT webhook_queues_pkey DO UPDATE SET due_at = excluded.due_at WHERE q.due_at > excluded.due_at;
END
$$;
