-- Makes events pending for a webhook, in their order. With p_event_id that event; otherwise those of the webhook's types from p_from to
-- before p_to (NULL for the oldest event, and for now) that were not delivered and are not pending, among the first p_limit events after
-- the given place. Returns their number, and the last of these places if there are more events: the number of the event, or for all
-- accounts, when p_account_id is empty, its time in microseconds and its id. p_max_lane is the last lane of this cell: 1024 or 1023.
CREATE OR REPLACE FUNCTION redeliver(
  p_caller caller, p_webhook_id text, p_types text, p_lane smallint, p_account_id text, p_event_id text, p_from timestamptz, p_to timestamptz,
  p_max_lane smallint, p_after bigint, p_after_id text, p_limit integer, p_is_logged boolean
) RETURNS TABLE (renewed integer, last bigint, last_id text)
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, CASE p_account_id WHEN '' THEN no_lane() ELSE p_lane END);
  v_types constant text[] := string_to_array(p_types, ',');
  v_now constant timestamptz := clock_timestamp();
  v_from constant timestamptz := coalesce(p_from, '-infinity');
  v_to constant timestamptz := coalesce(p_to, v_now);
  v_after constant timestamptz := CASE p_after_id WHEN '' THEN '-infinity'
    ELSE timestamptz 'epoch' + p_after * interval '1 microsecond' END;
  v_first bigint;
  v_end bigint;
  v_chosen events[];
BEGIN
  IF p_event_id <> '' THEN
    v_chosen := ARRAY(SELECT e FROM events e WHERE e.lane IN (p_lane, p_max_lane) AND e.id = p_event_id
      AND p_account_id IN ('', e.account_id) AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = e.lane AND NOT l.is_owned));
  ELSIF p_account_id <> '' THEN
    v_first := greatest(event_seq_at(p_lane, p_account_id, v_from), p_after + 1);
    v_end := event_seq_at(p_lane, p_account_id, v_to);
    IF v_end > v_first + p_limit THEN
      v_end := v_first + p_limit;
      last := v_end - 1;
    END IF;
    v_chosen := ARRAY(SELECT e FROM events e
      WHERE e.lane = p_lane AND e.account_id = p_account_id AND e.seq >= v_first AND e.seq < v_end);
  ELSE
    v_chosen := ARRAY(SELECT e FROM events e
      WHERE (e.created_at, e.id) > (v_after, p_after_id) AND e.created_at >= v_from AND e.created_at < v_to
      ORDER BY e.created_at, e.id LIMIT p_limit);
    IF cardinality(v_chosen) = p_limit THEN
      last := (extract(epoch FROM v_chosen[p_limit].created_at) * 1000000)::bigint;
      last_id := v_chosen[p_limit].id;
    END IF;
  END IF;
  WITH chosen AS (
    SELECT c.* FROM unnest(v_chosen) c
    -- The limit of 1 keeps a look-up by key.
    LEFT JOIN LATERAL (SELECT i.state FROM deliveries i
      WHERE i.lane = c.lane AND i.account_id = c.account_id AND i.seq = c.seq AND i.webhook_id = p_webhook_id LIMIT 1) d ON true
    WHERE p_event_id <> '' OR (v_types = '{}' OR c.type = ANY (v_types))
      AND d.state IS DISTINCT FROM 'delivered' AND d.state IS DISTINCT FROM 'pending' AND c.lane <= p_max_lane
      AND (p_account_id <> '' OR NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = c.lane AND NOT l.is_owned))
  ), renewed_rows AS (
    INSERT INTO deliveries AS d (lane, account_id, seq, webhook_id, event_id, created_at, due_at)
      SELECT c.lane, c.account_id, c.seq, p_webhook_id, c.id, c.created_at,
        v_now + interval '1 microsecond' * row_number() OVER (ORDER BY c.created_at, c.id)
      FROM chosen c ORDER BY c.lane, c.account_id, c.seq
      ON CONFLICT ON CONSTRAINT deliveries_pkey DO UPDATE SET state = 'pending', attempts = 0, due_at = excluded.due_at
      RETURNING d.lane
  ), woken AS (
    INSERT INTO woken_queues (lane, webhook_id) SELECT DISTINCT r.lane, p_webhook_id FROM renewed_rows r
  )
  SELECT count(*) INTO renewed FROM renewed_rows;
  IF p_is_logged THEN
    PERFORM log_change(p_caller, CASE p_account_id WHEN '' THEN no_lane() ELSE p_lane END, p_webhook_id, p_account_id);
  END IF;
  RETURN NEXT;
END
$$;
