-- Deletes events that are older than p_days, at most 10,000. Returns their number.
CREATE OR REPLACE FUNCTION sweep_events(p_days integer) RETURNS integer
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_before constant timestamptz := clock_timestamp() - make_interval(days => p_days);
  v_deleted integer;
BEGIN
  DELETE FROM events e USING (
    SELECT o.lane, o.account_id, o.seq FROM events o WHERE o.created_at < v_before ORDER BY o.created_at LIMIT 10000
  ) old WHERE e.lane = old.lane AND e.account_id = old.account_id AND e.seq = old.seq;
  GET DIAGNOSTICS v_deleted = ROW_COUNT;
  RETURN v_deleted;
END
$$;
