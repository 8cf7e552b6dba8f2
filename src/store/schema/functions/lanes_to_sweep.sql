-- The lanes of this cell with abandoned holds: expired, or of a server that is not registered. Among the lanes from
-- p_from to p_to also those with answers older than 24 hours, and with counters of users whose windows have passed.
CREATE OR REPLACE FUNCTION lanes_to_sweep(p_from smallint, p_to smallint) RETURNS SETOF smallint
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_old constant timestamptz := v_now - interval '24 hours';
  v_passed constant timestamptz := v_now - interval '1 minute';
BEGIN
  RETURN QUERY SELECT h.lane FROM holds h
    WHERE (h.expires_at < v_now OR NOT EXISTS (SELECT 1 FROM servers s WHERE s.id = h.server_id))
      AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = h.lane AND NOT l.is_owned)
    UNION
    SELECT l.lane FROM lanes l WHERE l.lane BETWEEN p_from AND p_to AND l.is_owned
      AND (EXISTS (SELECT 1 FROM answers x WHERE x.lane = l.lane AND x.created_at < v_old)
        OR EXISTS (SELECT 1 FROM limit_counters c WHERE c.lane = l.lane AND c.user_id <> '' AND c.expires_at < v_passed AND 0 = ALL ((c.counter).held)));
END
$$;
