-- Claims the next attempts of a server: at most p_any, and p_fast more to endpoints whose last attempt was fast. p_busy has the webhooks
-- of operators to which the server delivers, once for each attempt: there are at most two. p_max_lane is 1024 in the cell that
-- owns the events of no account, and 1023 in others. A claim ends after a minute.
CREATE OR REPLACE FUNCTION claim_deliveries(p_any integer, p_fast integer, p_busy text[], p_max_lane smallint)
  RETURNS TABLE (
    lane smallint, webhook_id text, claim bigint, is_fast_only boolean, account_id text, seq bigint, event_id text, type text,
    created_at timestamptz, data text, attempts smallint, url text, secrets text
  )
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
#variable_conflict use_column
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_any integer := p_any;
  v_fast integer := p_fast;
  v_busy text[] := p_busy;
  v_queue webhook_queues;
  v_webhook webhooks;
  v_delivery deliveries;
BEGIN
  -- A crash that loses the claim leads to one more attempt, so the commit does not wait for the disk.
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM wake_queues(v_now);
  FOR v_queue IN
    WITH fast AS (
      SELECT i.* FROM webhook_queues i WHERE NOT i.is_of_operators AND NOT i.is_slow AND i.ready_at <= v_now
        ORDER BY i.ready_at LIMIT p_any + p_fast FOR UPDATE SKIP LOCKED
    ), slow AS (
      SELECT i.* FROM webhook_queues i WHERE NOT i.is_of_operators AND i.is_slow AND i.ready_at <= v_now
        ORDER BY i.ready_at LIMIT p_any FOR UPDATE SKIP LOCKED
    ), of_operators AS (
      SELECT o.* FROM webhooks w CROSS JOIN LATERAL (
        SELECT i.* FROM webhook_queues i WHERE i.is_of_operators AND i.webhook_id = w.id AND i.ready_at <= v_now
          ORDER BY i.ready_at LIMIT 2 FOR UPDATE SKIP LOCKED) o
      WHERE w.lane = 1024
    )
    SELECT q.* FROM (TABLE fast UNION ALL TABLE slow UNION ALL TABLE of_operators) q ORDER BY q.ready_at
  LOOP
    CONTINUE WHEN v_any = 0 AND (v_fast = 0 OR v_queue.is_slow)
      OR v_queue.is_of_operators AND cardinality(array_positions(v_busy, v_queue.webhook_id)) >= 2;
    SELECT w.* INTO v_webhook FROM webhooks w
      WHERE w.lane = CASE WHEN v_queue.is_of_operators THEN no_lane() ELSE v_queue.lane END AND w.id = v_queue.webhook_id;
    IF NOT FOUND THEN
      DELETE FROM webhook_queues q WHERE q.lane = v_queue.lane AND q.webhook_id = v_queue.webhook_id;
      CONTINUE;
    END IF;
    IF v_webhook.state = 'paused' OR v_queue.lane > p_max_lane
        OR EXISTS (SELECT 1 FROM lanes l WHERE l.lane = v_queue.lane AND NOT l.is_owned) THEN
      UPDATE webhook_queues q SET blocked_until = v_now + interval '1 minute'
        WHERE q.lane = v_queue.lane AND q.webhook_id = v_queue.webhook_id;
      CONTINUE;
    END IF;
    IF v_webhook.state = 'disabled' THEN
      PERFORM fail_deliveries(v_queue.lane, v_queue.webhook_id);
    END IF;
    SELECT d.* INTO v_delivery FROM deliveries d
      WHERE d.lane = v_queue.lane AND d.webhook_id = v_queue.webhook_id AND d.state = 'pending' ORDER BY d.due_at LIMIT 1;
    IF NOT FOUND OR v_delivery.due_at > v_now OR v_webhook.state = 'disabled' THEN
      UPDATE webhook_queues q SET due_at = coalesce(v_delivery.due_at, 'infinity')
        WHERE q.lane = v_queue.lane AND q.webhook_id = v_queue.webhook_id;
      CONTINUE;
    END IF;
    UPDATE webhook_queues q SET claims = q.claims + 1, claimed_until = v_now + interval '1 minute'
      WHERE q.lane = v_queue.lane AND q.webhook_id = v_queue.webhook_id;
    is_fast_only := v_fast > 0 AND NOT v_queue.is_slow;
    v_fast := v_fast - is_fast_only::integer;
    v_any := v_any - (NOT is_fast_only)::integer;
    v_busy := v_busy || CASE WHEN v_queue.is_of_operators THEN ARRAY[v_queue.webhook_id] END;
    RETURN QUERY SELECT e.lane, v_queue.webhook_id, v_queue.claims + 1, is_fast_only, e.account_id, e.seq, e.id, e.type, e.created_at,
        e.data::text, v_delivery.attempts, v_webhook.url,
        secrets_of_webhook(v_webhook.secret, v_webhook.previous_secret, v_webhook.previous_expires_at)
      FROM events e WHERE e.lane = v_delivery.lane AND e.account_id = v_delivery.account_id AND e.seq = v_delivery.seq;
  END LOOP;
END
$$;
