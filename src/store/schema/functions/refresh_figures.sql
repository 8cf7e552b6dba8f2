-- Brings the figures of the accounts of some lanes up to date. It writes only those that changed. The charges of the days before today
-- are read once a day.
CREATE OR REPLACE FUNCTION refresh_figures(p_first smallint, p_last smallint) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  c_quarters constant integer := 96;
  v_now constant timestamptz := clock_timestamp();
  v_day integer;
  v_month integer;
  v_first_quarter constant integer := floor(extract(epoch FROM date_trunc('month', v_now, 'UTC')) / 900);
BEGIN
  SELECT t.day, t.month INTO v_day, v_month FROM day_and_month(v_now) t;
  INSERT INTO account_figures AS f (lane, account_id, state, balance_micros, day, day_micros, month, month_micros, last_seq)
  SELECT a.lane, a.id, s.state, a.balance_micros, v_day, d.micros, v_month, d.micros + e.micros, a.last_seq
  FROM accounts a
  LEFT JOIN account_figures o ON o.lane = a.lane AND o.account_id = a.id
  CROSS JOIN LATERAL (
    SELECT CASE WHEN a.closed_at IS NOT NULL THEN 'closed' WHEN a.suspended_at IS NOT NULL THEN 'suspended' ELSE 'active' END
  ) s (state)
  CROSS JOIN LATERAL (
    SELECT coalesce(sum(u.cost_micros), 0)::bigint FROM usage_quarters u
    WHERE u.lane = a.lane AND u.account_id = a.id AND u.quarter >= v_day * c_quarters AND u.quarter < (v_day + 1) * c_quarters
  ) d (micros)
  CROSS JOIN LATERAL (
    SELECT CASE WHEN o.day = v_day THEN o.month_micros - o.day_micros ELSE (
      SELECT coalesce(sum(u.cost_micros), 0)::bigint FROM usage_quarters u
      WHERE u.lane = a.lane AND u.account_id = a.id AND u.quarter >= v_first_quarter AND u.quarter < v_day * c_quarters) END
  ) e (micros)
  WHERE a.lane BETWEEN p_first AND p_last AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = a.lane AND NOT l.is_owned)
    AND (o.last_seq IS DISTINCT FROM a.last_seq OR o.state <> s.state)
  ORDER BY a.lane, a.id
  ON CONFLICT ON CONSTRAINT account_figures_pkey DO UPDATE SET state = excluded.state, balance_micros = excluded.balance_micros,
    day = excluded.day, day_micros = excluded.day_micros, month = excluded.month, month_micros = excluded.month_micros,
    last_seq = excluded.last_seq;
END
$$;
