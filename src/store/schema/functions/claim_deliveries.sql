-- Claims the next attempts of a server: at most p_any, p_hanging of them to endpoints that hang, and p_fast more to endpoints that are
-- fast. p_busy has the webhooks of operators to which the server delivers, once for each attempt: there are at most two. p_max_lane is
-- 1024 in the cell that owns the events of no account, and 1023 in others. A claim ends after a minute.
CREATE OR REPLACE FUNCTION claim_deliveries(p_any integer, p_hanging integer, p_fast integer, p_busy text[], p_max_lane smallint)
  RETURNS TABLE (
    lane smallint, webhook_id text, claim bigint, is_fast_only boolean, is_hanging boolean, account_id text, seq bigint, event_id text, type text,
    created_at timestamptz, data text, attempts smallint, url text, secrets text, revision integer
  )
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
AS $$
#variable_conflict use_column
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_queues webhook_queues[];
BEGIN
  -- A crash that loses the claim leads to one more attempt, so the commit does not wait for the disk.
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM wake_queues(v_now);
  v_queues := ARRAY(
    WITH fast AS (
      SELECT i AS q FROM webhook_queues i WHERE NOT i.is_of_operators AND NOT i.is_slow AND NOT i.is_hanging AND i.ready_at <= v_now
        ORDER BY i.ready_at LIMIT p_any + p_fast FOR UPDATE SKIP LOCKED
    ), slow AS (
      SELECT i AS q FROM webhook_queues i WHERE NOT i.is_of_operators AND i.is_slow AND NOT i.is_hanging AND i.ready_at <= v_now
        ORDER BY i.ready_at LIMIT p_any FOR UPDATE SKIP LOCKED
    ), hanging AS (
      SELECT i AS q FROM webhook_queues i WHERE NOT i.is_of_operators AND i.is_slow AND i.is_hanging AND i.ready_at <= v_now
        ORDER BY i.ready_at LIMIT least(p_any, p_hanging) FOR UPDATE SKIP LOCKED
    ), of_operators AS (
      SELECT o.q FROM webhooks w CROSS JOIN LATERAL (
        SELECT i AS q FROM webhook_queues i WHERE i.is_of_operators AND i.webhook_id = w.id AND i.ready_at <= v_now
          ORDER BY i.ready_at LIMIT greatest(0, 2 - cardinality(array_positions(p_busy, w.id))) FOR UPDATE SKIP LOCKED) o
      WHERE w.lane = 1024
    )
    TABLE fast UNION ALL TABLE slow UNION ALL TABLE hanging UNION ALL TABLE of_operators);
  IF v_queues = '{}' THEN
    RETURN;
  END IF;
  -- A second statement, because a statement with the locks does not see what was stored before it acquired them.
  RETURN QUERY WITH found AS (
    SELECT q.lane, q.webhook_id, q.is_slow, q.is_hanging, q.ready_at, w.url, w.secrets, w.revision, n.account_id, n.seq, n.due_at, n.attempts,
        CASE WHEN w.state IS NULL THEN 'deleted'
          WHEN EXISTS (SELECT 1 FROM lanes l WHERE l.lane = q.lane AND NOT l.is_owned) THEN 'moved'
          WHEN w.state = 'paused' OR q.lane > p_max_lane THEN 'blocked'
          WHEN w.state = 'disabled' AND n.due_at IS NOT NULL THEN 'disabled'
          WHEN n.due_at <= v_now THEN 'due'
          ELSE 'waiting' END AS state
      FROM unnest(v_queues) q
      -- Each limit of 1 keeps a look-up by key.
      LEFT JOIN LATERAL (
        SELECT i.state, i.url, i.revision, secrets_of_webhook(i.secret, i.previous_secrets, i.previous_expires_at) AS secrets FROM webhooks i
        WHERE i.lane = CASE WHEN q.is_of_operators THEN no_lane() ELSE q.lane END AND i.id = q.webhook_id LIMIT 1) w ON true
      LEFT JOIN LATERAL next_delivery(q.lane, q.webhook_id, w.revision) n ON true
  ), deleted AS (
    DELETE FROM webhook_queues q USING found f WHERE f.state = 'deleted' AND q.lane = f.lane AND q.webhook_id = f.webhook_id
  ), failed AS (
    UPDATE deliveries d SET state = 'failed', error = 'The webhook was disabled.'
      FROM found f CROSS JOIN LATERAL (SELECT i.account_id, i.seq FROM deliveries i
        WHERE i.lane = f.lane AND i.webhook_id = f.webhook_id AND i.state = 'pending' ORDER BY i.due_at LIMIT 1000) p
      WHERE f.state = 'disabled' AND d.lane = f.lane AND d.webhook_id = f.webhook_id AND d.account_id = p.account_id AND d.seq = p.seq
  ), fast_only AS (
    SELECT f.*, NOT f.is_slow AND row_number() OVER (PARTITION BY f.is_slow ORDER BY f.ready_at) <= p_fast AS is_fast_only,
        row_number() OVER (PARTITION BY f.is_hanging ORDER BY f.ready_at) AS hanging_n
      FROM found f WHERE f.state = 'due'
  ), numbered AS (
    SELECT f.*, row_number() OVER (PARTITION BY f.is_fast_only ORDER BY f.ready_at) AS n FROM fast_only f
      WHERE NOT f.is_hanging OR f.hanging_n <= p_hanging
  ), chosen AS (
    SELECT n.lane, n.webhook_id, n.state, n.due_at, n.is_fast_only FROM numbered n WHERE n.is_fast_only OR n.n <= p_any
    UNION ALL
    SELECT f.lane, f.webhook_id, f.state, f.due_at, NULL FROM found f WHERE f.state IN ('moved', 'blocked', 'disabled', 'waiting')
  ), updated AS (
    UPDATE webhook_queues q SET claims = q.claims + (c.state = 'due')::integer,
        claimed_until = CASE c.state WHEN 'due' THEN v_now + interval '1 minute' ELSE q.claimed_until END,
        -- A queue of a lane that another cell owns waits until this cell owns it. If the queues of paused webhooks came up each minute,
        -- they would take turns from others. Enabling a webhook of an account unblocks its queue; those of operators have more queues.
        blocked_until = CASE c.state WHEN 'moved' THEN 'infinity'
          WHEN 'blocked' THEN v_now + CASE WHEN q.is_of_operators THEN interval '1 minute' ELSE interval '1 hour' END
          ELSE q.blocked_until END,
        due_at = CASE c.state WHEN 'waiting' THEN coalesce(c.due_at, 'infinity') WHEN 'disabled' THEN v_now ELSE q.due_at END
      FROM chosen c WHERE q.lane = c.lane AND q.webhook_id = c.webhook_id
      RETURNING q.lane, q.webhook_id, q.claims, c.is_fast_only
  )
  SELECT u.lane, u.webhook_id, u.claims, u.is_fast_only, f.is_hanging, e.account_id, e.seq, e.id, e.type, e.created_at, e.data::text,
      f.attempts, f.url, f.secrets, f.revision
    FROM updated u JOIN found f ON f.lane = u.lane AND f.webhook_id = u.webhook_id
    JOIN events e ON e.lane = f.lane AND e.account_id = f.account_id AND e.seq = f.seq
    WHERE u.is_fast_only IS NOT NULL;
END
$$;
