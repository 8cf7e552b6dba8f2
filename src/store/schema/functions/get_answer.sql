-- The stored response of the first call with this idempotency key. No row if there is none.
CREATE OR REPLACE FUNCTION get_answer(p_lane smallint, p_account_id text, p_idempotency_key text)
  RETURNS TABLE (answer text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT x.answer FROM answers x
    WHERE x.lane = p_lane AND x.account_id = p_account_id AND x.idempotency_key = p_idempotency_key
      AND x.answer IS NOT NULL;
END
$$;
