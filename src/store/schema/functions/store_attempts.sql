-- Stores the outcomes of claimed attempts, a JSON array, and ends their claims. An attempt without "attempt" was not made. The
-- attempt of another server counts if this one came too late, unless the endpoint accepted the event. Returns the webhooks to disable.
CREATE OR REPLACE FUNCTION store_attempts(p_attempts text) RETURNS TABLE (webhook_id text, reason text)
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_old constant timestamptz := v_now - interval '5 days';
  v_attempt record;
  v_queue webhook_queues;
BEGIN
  -- See claim_deliveries.
  PERFORM set_config('synchronous_commit', 'off', true);
  FOR v_attempt IN SELECT a.* FROM json_to_recordset(p_attempts::json) a (
      lane smallint, webhook_id text, claim bigint, account_id text, seq bigint, attempt smallint, status smallint, latency_ms integer,
      error text, answer text, retry_ms bigint, pause_ms bigint) ORDER BY a.lane, a.webhook_id
  LOOP
    SELECT q.* INTO v_queue FROM webhook_queues q
      WHERE q.lane = v_attempt.lane AND q.webhook_id = v_attempt.webhook_id FOR UPDATE;
    CONTINUE WHEN NOT FOUND OR EXISTS (SELECT 1 FROM lanes l WHERE l.lane = v_attempt.lane AND NOT l.is_owned);
    IF v_attempt.attempt IS NOT NULL THEN
      UPDATE deliveries d SET attempts = v_attempt.attempt, attempted_at = v_now, status = v_attempt.status,
          latency_ms = v_attempt.latency_ms, error = v_attempt.error, answer = v_attempt.answer,
          state = CASE WHEN v_attempt.error = '' THEN 'delivered' WHEN v_attempt.retry_ms IS NULL THEN 'failed' ELSE 'pending'
            END::delivery_state,
          due_at = v_now + coalesce(v_attempt.retry_ms, 0) * interval '1 millisecond'
        WHERE d.lane = v_attempt.lane AND d.account_id = v_attempt.account_id AND d.seq = v_attempt.seq
          AND d.webhook_id = v_attempt.webhook_id AND d.state = 'pending'
          AND (d.attempts = v_attempt.attempt - 1 OR v_attempt.error = '');
      v_queue.is_slow := v_attempt.latency_ms >= 1000;
      v_queue.failing_since := CASE WHEN v_attempt.error <> '' THEN coalesce(v_queue.failing_since, v_now) END;
      v_queue.accepted_at := CASE v_attempt.error WHEN '' THEN v_now ELSE v_queue.accepted_at END;
      v_queue.blocked_until := v_now + coalesce(v_attempt.pause_ms, 0) * interval '1 millisecond';
    END IF;
    UPDATE webhook_queues q SET is_slow = v_queue.is_slow, failing_since = v_queue.failing_since, accepted_at = v_queue.accepted_at,
        blocked_until = v_queue.blocked_until,
        claimed_until = CASE q.claims WHEN v_attempt.claim THEN '-infinity' ELSE q.claimed_until END,
        due_at = coalesce((SELECT d.due_at FROM deliveries d
          WHERE d.lane = v_attempt.lane AND d.webhook_id = v_attempt.webhook_id AND d.state = 'pending' ORDER BY d.due_at LIMIT 1), 'infinity')
      WHERE q.lane = v_attempt.lane AND q.webhook_id = v_attempt.webhook_id;
    IF v_attempt.status = 410 THEN
      RETURN QUERY SELECT v_attempt.webhook_id, 'gone';
    -- The endpoint of operators may accept the events of other lanes.
    ELSIF v_queue.failing_since < v_old AND NOT EXISTS (SELECT 1 FROM webhook_queues q
        WHERE q.is_of_operators AND q.webhook_id = v_attempt.webhook_id AND q.accepted_at > v_old) THEN
      RETURN QUERY SELECT v_attempt.webhook_id, 'failing';
    END IF;
  END LOOP;
END
$$;
