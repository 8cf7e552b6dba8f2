-- The same before a number, newest first; NULL for the last events.
CREATE OR REPLACE FUNCTION list_latest_events(p_lane smallint, p_account_id text, p_types text, p_before bigint, p_limit integer)
  RETURNS SETOF event_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_before constant bigint := coalesce(p_before, 9223372036854775807);
BEGIN
  IF p_types = '' THEN
    RETURN QUERY SELECT e.id, e.account_id, e.seq, e.type, e.created_at,
        (extract(epoch FROM e.created_at) * 1000000)::bigint, e.data::text FROM events e
      WHERE e.lane = p_lane AND e.account_id = p_account_id AND e.seq < v_before ORDER BY e.seq DESC LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT e.id, e.account_id, e.seq, e.type, e.created_at,
        (extract(epoch FROM e.created_at) * 1000000)::bigint, e.data::text
      FROM unnest(string_to_array(p_types, ',')) t (type) CROSS JOIN LATERAL (
        SELECT * FROM events i
        WHERE i.lane = p_lane AND i.account_id = p_account_id
          AND (i.type, i.seq) < (t.type, v_before) AND (i.type, i.seq) >= (t.type, 0)
        ORDER BY i.type DESC, i.seq DESC LIMIT p_limit) e
      ORDER BY e.seq DESC LIMIT p_limit;
  END IF;
END
$$;
