-- The events of all accounts before the event at the given place, newest first; an empty p_before_id for the last events.
CREATE OR REPLACE FUNCTION list_all_events(p_types text, p_before_micros bigint, p_before_id text, p_limit integer)
  RETURNS SETOF event_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_before constant timestamptz := CASE p_before_id WHEN '' THEN 'infinity'
    ELSE timestamptz 'epoch' + p_before_micros * interval '1 microsecond' END;
BEGIN
  IF p_types = '' THEN
    RETURN QUERY SELECT e.id, e.account_id, e.seq, e.type, e.created_at,
        (extract(epoch FROM e.created_at) * 1000000)::bigint, e.data::text FROM events e
      WHERE (e.created_at, e.id) < (v_before, p_before_id) ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT e.id, e.account_id, e.seq, e.type, e.created_at,
        (extract(epoch FROM e.created_at) * 1000000)::bigint, e.data::text
      FROM unnest(string_to_array(p_types, ',')) t (type) CROSS JOIN LATERAL (
        -- See list_events.
        SELECT * FROM events i
        WHERE (i.type, i.created_at, i.id) < (t.type, v_before, p_before_id) AND (i.type, i.created_at) >= (t.type, '-infinity')
        ORDER BY i.type DESC, i.created_at DESC, i.id DESC LIMIT p_limit) e
      ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit;
  END IF;
END
$$;
