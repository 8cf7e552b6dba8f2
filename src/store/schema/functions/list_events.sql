-- The events of an account: oldest first after the number p_position, or newest first before it; NULL for all. Those of the types, which
-- are separated by commas, or all. The plans are made once, possibly while the table is empty; only index look-ups in the order of the
-- list are fast at every size, so each order has a query of its own.
CREATE OR REPLACE FUNCTION list_events(
  p_lane smallint, p_account_id text, p_types text, p_position bigint, p_is_newest_first boolean, p_limit integer
) RETURNS SETOF event_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_after constant bigint := coalesce(p_position, 0);
  v_before constant bigint := coalesce(p_position, 9223372036854775807);
BEGIN
  RETURN QUERY
  SELECT e.id, e.account_id, e.seq, e.type, e.created_at, (extract(epoch FROM e.created_at) * 1000000)::bigint, e.data::text
  FROM (
    (SELECT * FROM events i WHERE p_types = '' AND NOT p_is_newest_first
       AND i.lane = p_lane AND i.account_id = p_account_id AND i.seq > v_after
     ORDER BY i.seq LIMIT p_limit)
    UNION ALL
    (SELECT * FROM events i WHERE p_types = '' AND p_is_newest_first
       AND i.lane = p_lane AND i.account_id = p_account_id AND i.seq < v_before
     ORDER BY i.seq DESC LIMIT p_limit)
    UNION ALL
    SELECT o.* FROM unnest(string_to_array(p_types, ',')) t (type) CROSS JOIN LATERAL (
      -- With a range in place of an equal type, only the index of the type has the order.
      SELECT * FROM events i WHERE NOT p_is_newest_first AND i.lane = p_lane AND i.account_id = p_account_id
        AND (i.type, i.seq) > (t.type, v_after) AND (i.type, i.seq) <= (t.type, 9223372036854775807)
      ORDER BY i.type, i.seq LIMIT p_limit) o
    UNION ALL
    SELECT o.* FROM unnest(string_to_array(p_types, ',')) t (type) CROSS JOIN LATERAL (
      SELECT * FROM events i WHERE p_is_newest_first AND i.lane = p_lane AND i.account_id = p_account_id
        AND (i.type, i.seq) < (t.type, v_before) AND (i.type, i.seq) >= (t.type, 0)
      ORDER BY i.type DESC, i.seq DESC LIMIT p_limit) o
  ) e
  ORDER BY CASE WHEN p_is_newest_first THEN -e.seq ELSE e.seq END LIMIT p_limit;
END
$$;
