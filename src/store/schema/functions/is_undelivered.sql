-- Whether a webhook should have received an event and did not.
CREATE OR REPLACE FUNCTION is_undelivered(
  p_lane smallint, p_account_id text, p_seq bigint, p_type text, p_webhook_id text, p_types text[]
) RETURNS boolean
  LANGUAGE sql STABLE
AS $$
  SELECT (p_types = '{}' OR p_type = ANY (p_types)) AND NOT EXISTS (SELECT 1 FROM deliveries d
    WHERE d.lane = p_lane AND d.account_id = p_account_id AND d.seq = p_seq AND d.webhook_id = p_webhook_id
      AND d.state <> 'failed')
$$;
