-- Deletes failed calls that are older than p_days, at most p_limit. Returns their number.
CREATE OR REPLACE FUNCTION sweep_failures(p_days integer, p_limit integer) RETURNS integer
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_before constant timestamptz := clock_timestamp() - make_interval(days => p_days);
  v_deleted integer;
BEGIN
  DELETE FROM failures f USING (
    SELECT o.lane, o.account_id, o.id FROM failures o WHERE o.created_at < v_before ORDER BY o.created_at LIMIT p_limit
  ) old WHERE f.lane = old.lane AND f.account_id = old.account_id AND f.id = old.id;
  GET DIAGNOSTICS v_deleted = ROW_COUNT;
  RETURN v_deleted;
END
$$;
