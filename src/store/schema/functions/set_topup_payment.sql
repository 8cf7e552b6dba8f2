-- Stores the payment of an automatic top-up, before it is made. The first one stays. A state that was read without it
-- is not applied any more.
CREATE OR REPLACE FUNCTION set_topup_payment(p_lane smallint, p_id text, p_payment_id text) RETURNS SETOF topups
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM require_lane(p_lane);
  UPDATE topups SET payment_id = p_payment_id, version = version + 1
    WHERE lane = p_lane AND id = p_id AND payment_id IS NULL AND is_automatic AND state = 'pending';
  RETURN QUERY SELECT t.* FROM topups t WHERE t.lane = p_lane AND t.id = p_id;
END
$$;
