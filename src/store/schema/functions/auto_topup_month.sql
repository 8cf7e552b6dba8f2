-- What the automatic top-ups of this month, in UTC, add up to: those that are paid or not decided yet.
CREATE OR REPLACE FUNCTION auto_topup_month(p_lane smallint, p_account_id text) RETURNS bigint
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  c_start constant timestamptz := date_trunc('month', clock_timestamp(), 'UTC');
BEGIN
  RETURN (SELECT coalesce(sum(t.amount_micros), 0) FROM topups t
    WHERE t.lane = p_lane AND t.account_id = p_account_id AND t.is_automatic AND t.created_at >= c_start
      AND t.state NOT IN ('failed', 'expired'));
END
$$;
