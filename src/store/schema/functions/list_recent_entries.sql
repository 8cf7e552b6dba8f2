-- The entries of all lanes before the one with the id p_before, which was created in p_month, newest first. An empty p_before
-- means from the start. Ids sort by time. Only the months since a year before are read.
CREATE OR REPLACE FUNCTION list_recent_entries(p_before text, p_month integer, p_limit integer) RETURNS SETOF priced_ledger
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  c_today constant timestamp := clock_timestamp() AT TIME ZONE 'UTC';
  -- The clock of a server can be ahead of this one.
  c_next_month constant integer := (extract(year FROM c_today) - 1970) * 12 + extract(month FROM c_today);
  v_before constant text := CASE p_before WHEN '' THEN 'led_' || repeat('z', 26) ELSE p_before END;
  v_month integer := coalesce(p_month, c_next_month);
  v_missing integer := p_limit;
  v_found integer;
BEGIN
  LOOP
    -- The newest entries are in the lanes whose own newest entry is latest.
    RETURN QUERY
    WITH newest AS MATERIALIZED (
      SELECT s.lane, n.id FROM (SELECT generate_series(0, 1023)::smallint AS lane) s
      CROSS JOIN LATERAL (
        SELECT l.id FROM ledger l WHERE l.lane = s.lane AND l.month = v_month AND l.id < v_before
        ORDER BY l.id DESC LIMIT 1
      ) n ORDER BY n.id DESC LIMIT v_missing
    )
    SELECT e.* FROM newest n CROSS JOIN LATERAL (
      SELECT l.* FROM priced_ledger l WHERE l.lane = n.lane AND l.month = v_month AND l.id < v_before
        -- If these lanes alone fill the page, older entries are not on it.
        AND l.id >= (SELECT CASE WHEN count(*) = v_missing THEN min(m.id) ELSE '' END FROM newest m)
      ORDER BY l.id DESC LIMIT v_missing
    ) e ORDER BY e.id DESC LIMIT v_missing;
    GET DIAGNOSTICS v_found = ROW_COUNT;
    v_missing := v_missing - v_found;
    v_month := v_month - 1;
    EXIT WHEN v_missing <= 0 OR v_month < c_next_month - 12;
  END LOOP;
END
$$;
