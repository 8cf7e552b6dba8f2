-- A hold or an ending that travels alone, as most do where little is going on. For one call, much of what vx.bill does is
-- in vain: arrays are taken apart, joined, sorted and written set by set.

-- As vx.place_holds, for a call without an idempotency key.
CREATE FUNCTION vx.hold_alone(
  p_server_id text, p_lane smallint, p_account_id text, p_hold_id text, p_key_id text, p_amount_micros bigint,
  p_seconds integer, OUT outcome text, OUT balance_micros bigint, OUT held_micros bigint
)
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
  v_account tid;
  v_revoked boolean;
BEGIN
  PERFORM FROM vx.lanes l WHERE l.lane = p_lane FOR UPDATE;
  -- A server that was thought to be gone is there again: what it holds now must stay. The key is read after that,
  -- since this may wait for another transaction.
  IF NOT EXISTS (SELECT FROM vx.servers s WHERE s.id = p_server_id) THEN
    PERFORM vx.beat(p_server_id);
  END IF;
  SELECT a.ctid, a.balance_micros, a.held_micros, k.revoked_at IS NOT NULL
    INTO STRICT v_account, balance_micros, held_micros, v_revoked
    FROM vx.accounts a
    LEFT JOIN vx.keys k ON k.lane = a.lane AND k.id = p_key_id
    WHERE a.lane = p_lane AND a.id = p_account_id;
  IF v_revoked THEN
    outcome := 'revoked';
  ELSIF p_amount_micros <= balance_micros - held_micros THEN
    outcome := 'held';
    INSERT INTO vx.holds (lane, id, account_id, server_id, amount_micros, expires_at)
      VALUES (p_lane, p_hold_id, p_account_id, p_server_id, p_amount_micros,
              clock_timestamp() + make_interval(secs => p_seconds));
    UPDATE vx.accounts a SET held_micros = a.held_micros + p_amount_micros WHERE a.ctid = v_account;
  ELSE
    outcome := 'insufficient';
  END IF;
END
$$;

-- As vx.end_holds.
CREATE FUNCTION vx.end_alone(
  p_lane smallint, p_account_id text, p_hold_id text, p_charge_micros bigint, p_reason text, p_request_id text,
  p_key_id text, p_model text, p_input_tokens bigint, p_output_tokens bigint, p_input_price bigint,
  p_output_price bigint, p_answer text, OUT outcome text, OUT balance_micros bigint, OUT charged_micros bigint
)
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET plan_cache_mode = force_generic_plan
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
  v_row vx.ledger;
  v_hold record;
BEGIN
  PERFORM FROM vx.lanes l WHERE l.lane = p_lane FOR UPDATE;
  SELECT h.ctid AS place, h.amount_micros, h.idempotency_key, least(p_charge_micros, h.amount_micros) AS charge,
         a.ctid AS account, a.balance_micros, a.last_seq, a.last_hash
    INTO v_hold
    FROM vx.holds h
    JOIN vx.accounts a ON a.lane = h.lane AND a.id = h.account_id
    WHERE h.lane = p_lane AND h.id = p_hold_id AND h.account_id = p_account_id;
  IF NOT FOUND THEN
    outcome := 'gone';
    RETURN;
  END IF;
  outcome := 'settled';
  DELETE FROM vx.holds h WHERE h.ctid = v_hold.place;
  IF p_charge_micros IS NULL THEN
    UPDATE vx.accounts a SET held_micros = a.held_micros - v_hold.amount_micros WHERE a.ctid = v_hold.account;
    IF v_hold.idempotency_key IS NOT NULL THEN
      DELETE FROM vx.answers x WHERE x.lane = p_lane AND x.account_id = p_account_id
        AND x.idempotency_key = v_hold.idempotency_key AND x.hold_id = p_hold_id;
    END IF;
    RETURN;
  END IF;
  charged_micros := v_hold.charge;
  balance_micros := v_hold.balance_micros - v_hold.charge;
  v_row := (p_lane, p_account_id, v_hold.last_seq + 1, 'led_' || substr(p_hold_id, 5), 'generation', -v_hold.charge,
    balance_micros, p_reason, p_request_id, p_key_id, p_model, p_input_tokens, p_output_tokens, p_input_price,
    p_output_price, NULL, clock_timestamp(), NULL);
  v_row.hash := vx.ledger_hash(v_hold.last_hash, v_row);
  INSERT INTO vx.ledger VALUES (v_row.*);
  UPDATE vx.accounts a SET
    held_micros = a.held_micros - v_hold.amount_micros, balance_micros = v_row.balance_after_micros,
    last_seq = v_row.seq, last_hash = v_row.hash
  WHERE a.ctid = v_hold.account;
  IF v_hold.idempotency_key IS NOT NULL THEN
    UPDATE vx.answers x SET answer = p_answer WHERE x.lane = p_lane AND x.account_id = p_account_id
      AND x.idempotency_key = v_hold.idempotency_key AND x.hold_id = p_hold_id;
  END IF;
END
$$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA vx FROM PUBLIC;
GRANT EXECUTE ON FUNCTION
  vx.hold_alone(text, smallint, text, text, text, bigint, integer),
  vx.end_alone(smallint, text, text, bigint, text, text, text, text, bigint, bigint, bigint, bigint, text)
  TO vx_app;
