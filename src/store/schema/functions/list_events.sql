-- The events of an account after a number, oldest first: those of the types, which are separated by commas, or all. The plans are made
-- once, possibly while the table is empty; only index look-ups in the order of the list are fast at every size.
CREATE OR REPLACE FUNCTION list_events(p_lane smallint, p_account_id text, p_types text, p_after bigint, p_limit integer)
  RETURNS SETOF event_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  IF p_types = '' THEN
    RETURN QUERY SELECT e.id, e.account_id, e.seq, e.type, e.created_at,
        (extract(epoch FROM e.created_at) * 1000000)::bigint, e.data::text FROM events e
      WHERE e.lane = p_lane AND e.account_id = p_account_id AND e.seq > p_after ORDER BY e.seq LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT e.id, e.account_id, e.seq, e.type, e.created_at,
        (extract(epoch FROM e.created_at) * 1000000)::bigint, e.data::text
      FROM unnest(string_to_array(p_types, ',')) t (type) CROSS JOIN LATERAL (
        SELECT * FROM events i
        -- With a range in place of an equal type, only the index of the type has the order.
        WHERE i.lane = p_lane AND i.account_id = p_account_id
          AND (i.type, i.seq) > (t.type, p_after) AND (i.type, i.seq) <= (t.type, 9223372036854775807)
        ORDER BY i.type, i.seq LIMIT p_limit) e
      ORDER BY e.seq LIMIT p_limit;
  END IF;
END
$$;
