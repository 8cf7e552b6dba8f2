-- Lists the pending deliveries of a disabled webhook as failed, at most 1,000.
CREATE OR REPLACE FUNCTION fail_deliveries(p_lane smallint, p_webhook_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE deliveries d SET state = 'failed', error = 'The webhook was disabled.'
    FROM (SELECT i.account_id, i.seq FROM deliveries i
      WHERE i.lane = p_lane AND i.webhook_id = p_webhook_id AND i.state = 'pending' ORDER BY i.due_at LIMIT 1000) p
    WHERE d.lane = p_lane AND d.webhook_id = p_webhook_id AND d.account_id = p.account_id AND d.seq = p.seq;
END
$$;
