-- Creates a top-up that is not paid yet, once per idempotency key. With p_has_default_url, the caller sent no p_return_url, and the server,
-- which may not be that of a repetition, added its own.
CREATE OR REPLACE FUNCTION create_topup(
  p_caller caller, p_lane smallint, p_account_id text, p_id text, p_amount_micros bigint, p_currency text, p_return_url text,
  p_has_default_url boolean, p_idempotency_key text
) RETURNS SETOF topups
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  c_max_pending constant integer := 20;
  v_account constant accounts := require_open_account(p_lane, p_account_id);
  v_topup topups;
BEGIN
  SELECT t.* INTO v_topup FROM topups t
    WHERE t.lane = p_lane AND t.account_id = v_account.id AND t.idempotency_key = p_idempotency_key;
  IF FOUND THEN
    IF (v_topup.amount_micros, v_topup.has_default_url) <> (p_amount_micros, p_has_default_url)
        OR NOT p_has_default_url AND v_topup.return_url <> p_return_url THEN
      PERFORM refuse('idempotency_key_reused');
    END IF;
    RETURN NEXT v_topup;
    RETURN;
  END IF;
  IF c_max_pending <= (SELECT count(*) FROM topups t
      WHERE t.lane = p_lane AND t.account_id = v_account.id AND t.state = 'pending') THEN
    PERFORM refuse('topup_limit_reached');
  END IF;
  PERFORM log_change(p_caller, p_lane, p_id, p_account_id);
  RETURN QUERY INSERT INTO topups (lane, id, account_id, state, amount_micros, currency, return_url, has_default_url,
      idempotency_key, created_at, next_poll_at)
    VALUES (p_lane, p_id, v_account.id, 'pending', p_amount_micros, p_currency, p_return_url, p_has_default_url,
      p_idempotency_key, clock_timestamp(), clock_timestamp() + interval '1 minute')
    RETURNING *;
END
$$;
