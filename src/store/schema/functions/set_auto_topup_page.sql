-- Stores the customer at the provider, and the page on which the customer stores a payment method. The first customer stays, unless it is
-- p_replaced. A customer can exist before automatic top-ups are set. Of a closed account, only the customer is stored, for forget_customer,
-- and no row is returned.
CREATE OR REPLACE FUNCTION set_auto_topup_page(
  p_lane smallint, p_account_id text, p_currency text, p_customer_id text, p_replaced text, p_page_id text, p_page_url text
) RETURNS SETOF auto_topup_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account constant accounts := lock_account(p_lane, p_account_id);
BEGIN
  INSERT INTO auto_topups (lane, account_id, is_enabled, threshold_micros, amount_micros, monthly_max_micros, currency)
    VALUES (p_lane, p_account_id, false, 0, 0, 0, p_currency) ON CONFLICT ON CONSTRAINT auto_topups_pkey DO NOTHING;
  UPDATE auto_topups s SET customer_id = coalesce(nullif(s.customer_id, p_replaced), p_customer_id)
    WHERE s.lane = p_lane AND s.account_id = p_account_id;
  IF v_account.closed_at IS NOT NULL THEN
    RETURN;
  END IF;
  UPDATE auto_topups s SET page_id = coalesce(p_page_id, s.page_id), page_url = coalesce(p_page_url, s.page_url),
      page_created_at = CASE WHEN p_page_id IS NULL THEN s.page_created_at ELSE clock_timestamp() END,
      due_at = least(s.due_at, CASE WHEN p_page_id IS NOT NULL THEN clock_timestamp() + interval '1 minute' END)
    WHERE s.lane = p_lane AND s.account_id = p_account_id;
  RETURN QUERY SELECT * FROM get_auto_topup(p_lane, p_account_id);
END
$$;
