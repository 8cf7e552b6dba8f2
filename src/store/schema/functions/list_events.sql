-- The events of an account after a number, oldest first: those of the types, which are separated by commas, or all.
CREATE OR REPLACE FUNCTION list_events(p_lane smallint, p_account_id text, p_types text, p_after bigint, p_limit integer)
  RETURNS TABLE (id text, account_id text, seq bigint, type text, created_at timestamptz, data text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  IF p_types = '' THEN
    RETURN QUERY SELECT e.id, e.account_id, e.seq, e.type, e.created_at, e.data::text FROM events e
      WHERE e.lane = p_lane AND e.account_id = p_account_id AND e.seq > p_after ORDER BY e.seq LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT e.id, e.account_id, e.seq, e.type, e.created_at, e.data::text
      FROM unnest(string_to_array(p_types, ',')) t (type) CROSS JOIN LATERAL (
        SELECT i.* FROM events i
        WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.type = t.type AND i.seq > p_after
        ORDER BY i.seq LIMIT p_limit) e
      ORDER BY e.seq LIMIT p_limit;
  END IF;
END
$$;
