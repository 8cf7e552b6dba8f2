-- Deletes events that are older than p_days, at most p_limit, with their deliveries, and the queues of deleted webhooks of
-- operators. Returns the number of events.
CREATE OR REPLACE FUNCTION sweep_events(p_days integer, p_limit integer) RETURNS integer
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_before constant timestamptz := clock_timestamp() - make_interval(days => p_days);
  v_deleted integer;
BEGIN
  WITH deleted AS (
    DELETE FROM events e USING (
      SELECT o.lane, o.account_id, o.seq FROM events o WHERE o.created_at < v_before ORDER BY o.created_at LIMIT p_limit
    ) old WHERE e.lane = old.lane AND e.account_id = old.account_id AND e.seq = old.seq
    RETURNING e.lane, e.account_id, e.seq
  ), deliveries_of_deleted AS (
    DELETE FROM deliveries d USING deleted e WHERE d.lane = e.lane AND d.account_id = e.account_id AND d.seq = e.seq
  )
  SELECT count(*) INTO v_deleted FROM deleted;
  DELETE FROM webhook_queues q WHERE q.is_of_operators
    AND NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.lane = no_lane() AND w.id = q.webhook_id);
  RETURN v_deleted;
END
$$;
