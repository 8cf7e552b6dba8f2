-- How an automatic top-up is paid, and whether the settings and the account still allow it. A payment that is late is not made if the
-- balance has risen meanwhile.
CREATE OR REPLACE FUNCTION topup_charge(p_lane smallint, p_id text) RETURNS TABLE (is_allowed boolean, customer_id text, method_id text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account_id constant text := (SELECT t.account_id FROM topups t WHERE t.lane = p_lane AND t.id = p_id);
BEGIN
  PERFORM lock_account(p_lane, v_account_id);
  RETURN QUERY SELECT t.state = 'pending' AND s.is_enabled AND t.amount_micros <= s.amount_micros AND a.owed_micros = 0
      AND a.suspended_at IS NULL AND auto_topup_month(p_lane, v_account_id) <= s.monthly_max_micros
        AND (a.balance_micros - a.held_micros < s.threshold_micros OR t.created_at > clock_timestamp() - interval '10 minutes'),
      s.customer_id, s.method_id
    FROM topups t JOIN auto_topups s ON s.lane = t.lane AND s.account_id = t.account_id
      JOIN accounts a ON a.lane = t.lane AND a.id = t.account_id
    WHERE t.lane = p_lane AND t.id = p_id;
END
$$;
