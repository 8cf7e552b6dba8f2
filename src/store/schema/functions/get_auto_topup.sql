-- The automatic top-ups of an account. No row before their settings were changed or a customer was stored.
CREATE OR REPLACE FUNCTION get_auto_topup(p_lane smallint, p_account_id text) RETURNS SETOF auto_topup_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT s.account_id, s.is_enabled, s.threshold_micros, s.amount_micros, s.monthly_max_micros, s.failures, s.last_failure,
      s.customer_id, s.method_id, s.method, s.page_id, s.page_url, s.page_created_at, auto_topup_month(p_lane, p_account_id),
      coalesce((SELECT t.id FROM topups t
        WHERE t.lane = p_lane AND t.account_id = p_account_id AND t.is_automatic AND t.state = 'pending'), '')
    FROM auto_topups s WHERE s.lane = p_lane AND s.account_id = p_account_id;
END
$$;
