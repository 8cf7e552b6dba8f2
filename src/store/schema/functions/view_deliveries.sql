-- The deliveries of a webhook, with the data of their events, before the one at the given place, the newest event first: those of a
-- state, or all. An empty p_before_id for the last ones.
CREATE OR REPLACE FUNCTION view_deliveries(p_webhook_id text, p_state text, p_before_micros bigint, p_before_id text, p_limit integer)
  RETURNS TABLE (
    event_id text, account_id text, seq bigint, type text, created_at timestamptz, created_micros bigint, state text, attempts smallint,
    due_at timestamptz, attempted_at timestamptz, status smallint, latency_ms integer, error text, answer text, data text
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_before constant timestamptz := CASE p_before_id WHEN '' THEN 'infinity'
    ELSE timestamptz 'epoch' + p_before_micros * interval '1 microsecond' END;
BEGIN
  RETURN QUERY SELECT d.event_id, d.account_id, d.seq, e.type, d.created_at, (extract(epoch FROM d.created_at) * 1000000)::bigint,
      d.state::text, d.attempts, CASE d.state WHEN 'pending' THEN d.due_at END, d.attempted_at, d.status, d.latency_ms, d.error,
      d.answer, e.data::text
    FROM unnest(CASE p_state WHEN '' THEN enum_range(NULL::delivery_state) ELSE ARRAY[p_state::delivery_state] END) s (state)
    CROSS JOIN LATERAL (
      -- See list_events.
      SELECT * FROM deliveries i WHERE i.webhook_id = p_webhook_id
        AND (i.state, i.created_at, i.event_id) < (s.state, v_before, p_before_id) AND (i.state, i.created_at) >= (s.state, '-infinity')
      ORDER BY i.state DESC, i.created_at DESC, i.event_id DESC LIMIT p_limit) d
    JOIN events e ON e.lane = d.lane AND e.account_id = d.account_id AND e.seq = d.seq
    ORDER BY d.created_at DESC, d.event_id DESC LIMIT p_limit;
END
$$;
