-- How many servers run, and what their generations hold.
CREATE OR REPLACE FUNCTION service_figures() RETURNS TABLE (servers bigint, generations bigint, held_micros bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  SELECT (SELECT count(*) FROM servers s WHERE s.seen_at > v_now - interval '20 seconds'),
         count(*), coalesce(sum(h.amount_micros), 0)::bigint
  FROM holds h WHERE h.expires_at > v_now
    AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = h.lane AND NOT l.is_owned);
END
$$;
