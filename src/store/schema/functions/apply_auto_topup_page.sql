-- Applies the state of a page on which a customer stores a payment method, as a server read it from the provider. p_method_id is NULL if
-- none was stored; p_is_over if the page can store none any more. A page of another installation with the same account at the provider
-- is ignored.
CREATE OR REPLACE FUNCTION apply_auto_topup_page(
  p_lane smallint, p_account_id text, p_page_id text, p_page_at timestamptz, p_customer_id text, p_is_over boolean, p_method_id text,
  p_method text
) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM require_lane(p_lane);
  IF NOT EXISTS (SELECT 1 FROM auto_topups s WHERE s.lane = p_lane AND s.account_id = p_account_id
      AND (s.customer_id = p_customer_id OR s.page_id = p_page_id)) THEN
    RETURN;
  END IF;
  PERFORM lock_account(p_lane, p_account_id);
  UPDATE auto_topups s SET method_id = p_method_id, method = p_method, method_page_at = p_page_at
    WHERE s.lane = p_lane AND s.account_id = p_account_id AND s.customer_id = p_customer_id AND p_method_id IS NOT NULL
      AND coalesce(s.method_page_at < p_page_at, true);
  UPDATE auto_topups s SET page_id = NULL, page_url = ''
    WHERE s.lane = p_lane AND s.account_id = p_account_id AND s.page_id = p_page_id AND p_is_over;
  PERFORM arm_auto_topup(p_lane, p_account_id, true);
END
$$;
