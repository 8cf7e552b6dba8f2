-- Makes events pending for a webhook, in their order, and returns their number. With p_event_id that event; otherwise at most p_limit
-- events of the webhook's types from p_from to before p_to (NULL for the oldest event, and for now) that were not delivered and are not
-- pending. For all accounts, p_account_id is empty, and p_max_lane is the last lane of this cell: 1024 or 1023.
CREATE OR REPLACE FUNCTION redeliver(
  p_act text, p_webhook_id text, p_types text, p_lane smallint, p_account_id text, p_event_id text, p_from timestamptz, p_to timestamptz,
  p_max_lane smallint, p_limit integer
) RETURNS integer
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_types constant text[] := string_to_array(p_types, ',');
  v_now constant timestamptz := clock_timestamp();
  v_from constant timestamptz := coalesce(p_from, '-infinity');
  v_to constant timestamptz := coalesce(p_to, v_now);
  v_first constant bigint := CASE WHEN p_account_id <> '' THEN event_seq_at(p_lane, p_account_id, v_from) END;
  v_end constant bigint := CASE WHEN p_account_id <> '' THEN event_seq_at(p_lane, p_account_id, v_to) END;
  v_count integer;
BEGIN
  IF p_account_id <> '' THEN
    PERFORM require_lane(p_lane);
  END IF;
  WITH chosen AS (
    (SELECT e.* FROM events e WHERE p_event_id <> '' AND e.lane IN (p_lane, p_max_lane) AND e.id = p_event_id
       AND p_account_id IN ('', e.account_id) AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = e.lane AND NOT l.is_owned))
    UNION ALL
    (SELECT e.* FROM events e
     -- The limit of 1 keeps a look-up by key.
     LEFT JOIN LATERAL (SELECT i.state FROM deliveries i
       WHERE i.lane = e.lane AND i.account_id = e.account_id AND i.seq = e.seq AND i.webhook_id = p_webhook_id LIMIT 1) d ON true
     WHERE p_event_id = '' AND p_account_id = '' AND e.created_at >= v_from AND e.created_at < v_to
       AND e.lane <= p_max_lane AND (v_types = '{}' OR e.type = ANY (v_types))
       AND d.state IS DISTINCT FROM 'delivered' AND d.state IS DISTINCT FROM 'pending'
       AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = e.lane AND NOT l.is_owned)
     ORDER BY e.created_at, e.id LIMIT p_limit)
    UNION ALL
    (SELECT e.* FROM events e
     LEFT JOIN LATERAL (SELECT i.state FROM deliveries i
       WHERE i.lane = e.lane AND i.account_id = e.account_id AND i.seq = e.seq AND i.webhook_id = p_webhook_id LIMIT 1) d ON true
     WHERE p_event_id = '' AND p_account_id <> '' AND e.lane = p_lane AND e.account_id = p_account_id
       AND e.seq >= v_first AND e.seq < v_end AND (v_types = '{}' OR e.type = ANY (v_types))
       AND d.state IS DISTINCT FROM 'delivered' AND d.state IS DISTINCT FROM 'pending'
     ORDER BY e.seq LIMIT p_limit)
  ), renewed AS (
    INSERT INTO deliveries AS d (lane, account_id, seq, webhook_id, event_id, created_at, due_at)
      SELECT c.lane, c.account_id, c.seq, p_webhook_id, c.id, c.created_at,
        v_now + interval '1 microsecond' * row_number() OVER (ORDER BY c.created_at, c.id)
      FROM chosen c ORDER BY c.lane, c.account_id, c.seq
      ON CONFLICT ON CONSTRAINT deliveries_pkey DO UPDATE SET state = 'pending', attempts = 0, due_at = excluded.due_at
      RETURNING d.lane
  ), woken AS (
    INSERT INTO woken_queues (lane, webhook_id) SELECT DISTINCT r.lane, p_webhook_id FROM renewed r
  )
  SELECT count(*) INTO v_count FROM renewed;
  IF p_act IS NOT NULL THEN
    PERFORM log_change(p_act, CASE p_account_id WHEN '' THEN no_lane() ELSE p_lane END, p_webhook_id, p_account_id);
  END IF;
  RETURN v_count;
END
$$;
