-- The number and the sum of the open holds of all servers, and the number of expired holds.
CREATE OR REPLACE FUNCTION hold_figures() RETURNS TABLE (holds bigint, held_micros bigint, expired bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  SELECT count(*) FILTER (WHERE NOT h.is_expired),
         coalesce(sum(h.amount_micros) FILTER (WHERE NOT h.is_expired), 0)::bigint,
         count(*) FILTER (WHERE h.is_expired)
  FROM (SELECT amount_micros, expires_at <= v_now AS is_expired FROM holds i
        WHERE NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = i.lane AND NOT l.is_owned)) h;
END
$$;
