-- What the closing of an account ends: numbers, the ids of its pending top-ups, and the stored payment method.
CREATE OR REPLACE FUNCTION closing_of(p_lane smallint, p_id text)
  RETURNS TABLE (active_keys bigint, webhooks bigint, pending_topups text, payment_method text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT
    (SELECT count(*) FROM keys k WHERE k.lane = p_lane AND k.account_id = p_id AND k.revoked_at IS NULL
      AND coalesce(k.expires_at, 'infinity') > clock_timestamp()),
    (SELECT count(*) FROM webhooks w WHERE w.lane = p_lane AND w.account_id = p_id),
    coalesce((SELECT string_agg(t.id, ',' ORDER BY t.id) FROM topups t
      WHERE t.lane = p_lane AND t.account_id = p_id AND t.state = 'pending'), ''),
    coalesce((SELECT s.method FROM auto_topups s WHERE s.lane = p_lane AND s.account_id = p_id), '');
END
$$;
