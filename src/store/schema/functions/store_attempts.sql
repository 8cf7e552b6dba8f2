-- Stores the outcomes of claimed attempts, a JSON array, and ends their claims. An attempt without "attempt" was not made, and an attempt
-- of an earlier revision of the webhook does not count. The attempt of another server counts if this one came too late, unless the
-- endpoint accepted the event. Returns the webhooks to disable.
CREATE OR REPLACE FUNCTION store_attempts(p_attempts text) RETURNS TABLE (webhook_id text, revision integer, reason text)
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
AS $$
#variable_conflict use_column
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_old constant timestamptz := v_now - interval '5 days';
  v_attempts delivery_attempt[];
BEGIN
  -- See claim_deliveries.
  PERFORM set_config('synchronous_commit', 'off', true);
  v_attempts := ARRAY(
    WITH given AS (
      -- A server that was suspended can have two attempts of a queue.
      SELECT DISTINCT ON (i.lane, i.webhook_id) i AS a FROM json_populate_recordset(NULL::delivery_attempt, p_attempts::json) i
      ORDER BY i.lane, i.webhook_id, i.error = '' DESC NULLS LAST, i.claim DESC
    )
    SELECT g.a FROM given g JOIN webhook_queues q ON q.lane = (g.a).lane AND q.webhook_id = (g.a).webhook_id
    ORDER BY q.lane, q.webhook_id FOR UPDATE OF q);
  IF EXISTS (SELECT 1 FROM lanes l WHERE NOT l.is_owned AND l.lane = ANY (ARRAY(SELECT i.lane FROM unnest(v_attempts) i))) THEN
    PERFORM raise_lane_moved();
  END IF;
  -- Each attempt gets the present revision of its webhook, NULL if that was deleted. Another statement, because one with the locks does
  -- not see a change of the webhook for which it waited.
  v_attempts := ARRAY(
    SELECT CASE w.revision WHEN i.revision THEN i
        ELSE (i.lane, i.webhook_id, i.claim, w.revision, i.account_id, i.seq, i.event_id,
          NULL, NULL, NULL, NULL, NULL, NULL, NULL)::delivery_attempt END
    FROM unnest(v_attempts) i
    LEFT JOIN webhooks w ON w.lane = CASE WHEN i.webhook_id LIKE 'who\_%' THEN no_lane() ELSE i.lane END AND w.id = i.webhook_id);
  UPDATE deliveries d SET attempts = a.attempt, revision = a.revision, attempted_at = v_now, status = a.status,
      latency_ms = a.latency_ms, error = a.error, answer = a.answer,
      state = CASE WHEN a.error = '' THEN 'delivered' WHEN a.retry_ms IS NULL THEN 'failed' ELSE 'pending' END::delivery_state,
      due_at = v_now + coalesce(a.retry_ms, 0) * interval '1 millisecond'
    FROM unnest(v_attempts) a
    WHERE d.lane = a.lane AND d.account_id = a.account_id AND d.seq = a.seq AND d.webhook_id = a.webhook_id AND d.state = 'pending'
      -- A promoted copy of this cell can have written and delivered another event with the same number.
      AND d.event_id = a.event_id
      AND (CASE d.revision WHEN a.revision THEN d.attempts ELSE 0 END = a.attempt - 1 OR a.error = '');
  -- Otherwise an endpoint that is fast and slow in turn would occupy the places for fast ones.
  UPDATE webhook_queues q SET is_slow = CASE WHEN a.latency_ms < 1000 THEN coalesce(q.slow_at > v_now - interval '10 minutes', false)
        WHEN a.latency_ms >= 1000 THEN true ELSE q.is_slow END,
      slow_at = CASE WHEN a.latency_ms >= 1000 THEN v_now ELSE q.slow_at END,
      is_hanging = CASE WHEN a.latency_ms < 5000 THEN coalesce(q.hung_at > v_now - interval '10 minutes', false)
        WHEN a.latency_ms >= 5000 THEN true ELSE q.is_hanging END,
      hung_at = CASE WHEN a.latency_ms >= 5000 THEN v_now ELSE q.hung_at END,
      failing_since = CASE WHEN a.error = '' THEN NULL WHEN a.error <> '' THEN coalesce((SELECT q.failing_since FROM webhooks w
          WHERE w.lane = CASE WHEN q.is_of_operators THEN no_lane() ELSE q.lane END AND w.id = q.webhook_id
            AND w.enabled_at <= q.failing_since), v_now)
        ELSE q.failing_since END,
      accepted_at = CASE a.error WHEN '' THEN v_now ELSE q.accepted_at END,
      -- At least until now: queues with many events that are due take turns with the others.
      blocked_until = CASE WHEN a.attempt IS NULL THEN q.blocked_until
        ELSE v_now + coalesce(a.pause_ms, 0) * interval '1 millisecond' END,
      claimed_until = CASE q.claims WHEN a.claim THEN '-infinity' ELSE q.claimed_until END,
      -- A queue whose webhook was deleted meanwhile is deleted by its next claim.
      due_at = CASE WHEN a.revision IS NULL THEN v_now
        ELSE coalesce((SELECT n.due_at FROM next_delivery(a.lane, a.webhook_id, a.revision) n), 'infinity') END
    FROM unnest(v_attempts) a WHERE q.lane = a.lane AND q.webhook_id = a.webhook_id;
  RETURN QUERY SELECT a.webhook_id, a.revision, CASE a.status WHEN 410 THEN 'gone' ELSE 'failing' END FROM unnest(v_attempts) a
    JOIN webhook_queues q ON q.lane = a.lane AND q.webhook_id = a.webhook_id
    -- The endpoint may have accepted nothing because there was no event for days: the attempts of half an hour decide.
    WHERE a.error <> '' AND (a.status = 410 OR a.attempt >= 4 AND q.failing_since < v_old
      -- The endpoint of operators may accept the events of other lanes.
      AND NOT EXISTS (SELECT 1 FROM webhook_queues o WHERE o.is_of_operators AND o.webhook_id = a.webhook_id AND o.accepted_at > v_old));
END
$$;
