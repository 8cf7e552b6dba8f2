-- Pending top-ups whose payment should be looked up now, at most p_limit. Each is returned to one server; the waits double, up to an
-- hour.
CREATE OR REPLACE FUNCTION topups_to_poll(p_limit integer) RETURNS TABLE (id text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_elsewhere constant smallint[] := ARRAY(SELECT l.lane FROM lanes l WHERE NOT l.is_owned);
BEGIN
  RETURN QUERY UPDATE topups t SET next_poll_at = v_now + least(greatest(v_now - t.created_at, interval '1 minute'), interval '1 hour')
    FROM (SELECT o.lane, o.id FROM topups o
      WHERE o.next_poll_at <= v_now AND o.lane <> ALL (v_elsewhere)
      ORDER BY o.next_poll_at LIMIT p_limit FOR UPDATE SKIP LOCKED) due
    WHERE t.lane = due.lane AND t.id = due.id
    RETURNING t.id;
END
$$;
