-- The next delivery of a queue, with the time at which it is due. Attempts of an earlier revision of the webhook do not count.
CREATE OR REPLACE FUNCTION next_delivery(p_lane smallint, p_webhook_id text, p_revision integer)
  RETURNS TABLE (account_id text, seq bigint, due_at timestamptz, attempts smallint)
  LANGUAGE sql STABLE
AS $$
  SELECT d.account_id, d.seq, CASE d.revision WHEN p_revision THEN d.due_at ELSE d.created_at END,
      CASE d.revision WHEN p_revision THEN d.attempts ELSE 0 END
    FROM deliveries d
    WHERE d.lane = p_lane AND d.webhook_id = p_webhook_id AND d.state = 'pending' ORDER BY d.due_at LIMIT 1
$$;
