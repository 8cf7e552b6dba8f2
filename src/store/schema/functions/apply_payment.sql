-- Applies the state of a payment that a server read from the provider to its top-up: credits the payment once, and takes back what the
-- provider gave back or withdrew. p_version is that of the top-up before the payment was read.
-- Outcomes: "applied", "stale" if another state was applied meanwhile, "unknown" without such a top-up. "alert" is empty, or the reason
-- to tell operators: the name of what differs from the top-up, "late", "suspended" or "closed".
CREATE OR REPLACE FUNCTION apply_payment(p_lane smallint, p_id text, p_version bigint, p_seen text)
  RETURNS TABLE (outcome text, account_id text, alert text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_seen constant seen_payment := json_populate_record(NULL::seen_payment, p_seen::json);
  v_topup topups;
  v_account accounts;
  v_entry_id text;
  v_change bigint;
BEGIN
  PERFORM require_lane(p_lane);
  SELECT t.* INTO v_topup FROM topups t WHERE t.lane = p_lane AND t.id = p_id;
  IF NOT FOUND THEN
    RETURN QUERY VALUES ('unknown', '', '');
    RETURN;
  END IF;
  v_account := lock_account(p_lane, v_topup.account_id);
  SELECT t.* INTO STRICT v_topup FROM topups t WHERE t.lane = p_lane AND t.id = p_id;
  IF v_topup.version <> p_version THEN
    RETURN QUERY VALUES ('stale', v_topup.account_id, '');
    RETURN;
  END IF;
  alert := CASE
    WHEN v_seen.account_id <> v_topup.account_id THEN 'account'
    WHEN v_seen.page_id <> v_topup.page_id THEN 'page'
    WHEN v_seen.payment_id <> v_topup.payment_id THEN 'payment'
    WHEN v_seen.currency <> v_topup.currency THEN 'currency'
    WHEN v_seen.status = 'paid' AND v_seen.amount_micros <> v_topup.amount_micros THEN 'amount'
    WHEN v_seen.status = 'paid' AND v_topup.paid_at IS NULL AND v_account.balance_micros + v_topup.amount_micros > 9000000000000000
      THEN 'balance'
    ELSE '' END;
  UPDATE topups t SET version = t.version + 1, problem = apply_payment.alert,
      page_id = CASE alert WHEN '' THEN coalesce(t.page_id, v_seen.page_id) ELSE t.page_id END,
      receipt_url = CASE alert WHEN '' THEN coalesce(nullif(v_seen.receipt_url, ''), t.receipt_url) ELSE t.receipt_url END,
      invoice_url = CASE alert WHEN '' THEN coalesce(nullif(v_seen.invoice_url, ''), t.invoice_url) ELSE t.invoice_url END
    WHERE t.lane = p_lane AND t.id = p_id;
  IF alert <> '' THEN
    UPDATE topups t SET next_poll_at = NULL WHERE t.lane = p_lane AND t.id = p_id;
    RETURN QUERY VALUES ('applied', v_topup.account_id, CASE alert WHEN v_topup.problem THEN '' ELSE alert END);
    RETURN;
  END IF;
  IF v_seen.status = 'paid' AND v_topup.paid_at IS NULL THEN
    -- An operator may have credited the payment, with its id as the idempotency key.
    IF NOT EXISTS (SELECT 1 FROM movement_keys m
        WHERE m.lane = p_lane AND m.account_id = v_topup.account_id AND m.idempotency_key = v_seen.payment_id) THEN
      v_entry_id := (post_movement(p_lane, v_topup.account_id, 'topup', v_topup.amount_micros, 'Top-up ' || p_id)).id;
      INSERT INTO movement_keys (lane, account_id, idempotency_key, seq, month)
        SELECT l.lane, l.account_id, v_seen.payment_id, l.seq, l.month FROM ledger l
        WHERE l.lane = p_lane AND l.account_id = v_topup.account_id AND l.seq = v_account.last_seq + 1;
    END IF;
    UPDATE topups t SET state = 'paid', paid_at = clock_timestamp(), payment_id = v_seen.payment_id, entry_id = v_entry_id,
        next_poll_at = NULL
      WHERE t.lane = p_lane AND t.id = p_id;
    PERFORM write_topup_event(p_lane, p_id, 'topup.paid', v_entry_id);
    IF v_topup.is_automatic THEN
      PERFORM end_auto_topup(p_lane, v_topup.account_id, p_id, '');
    END IF;
    alert := CASE WHEN v_topup.state <> 'pending' THEN 'late' WHEN v_account.closed_at IS NOT NULL THEN 'closed'
      WHEN v_account.suspended_at IS NOT NULL THEN 'suspended' ELSE '' END;
  ELSIF v_seen.status IN ('failed', 'expired') AND v_topup.state = 'pending' THEN
    UPDATE topups t SET state = v_seen.status::topup_state, failure = v_seen.failure, next_poll_at = NULL
      WHERE t.lane = p_lane AND t.id = p_id;
    IF v_topup.is_automatic THEN
      PERFORM end_auto_topup(p_lane, v_topup.account_id, p_id, v_seen.failure);
    ELSE
      PERFORM write_topup_event(p_lane, p_id, 'topup.' || v_seen.status, NULL);
    END IF;
  END IF;
  IF v_seen.status = 'paid' AND (v_seen.refunded_micros, v_seen.disputed_micros) <> (v_topup.refunded_micros, v_topup.disputed_micros) THEN
    v_change := least(v_topup.amount_micros, v_seen.refunded_micros + v_seen.disputed_micros)
      - least(v_topup.amount_micros, v_topup.refunded_micros + v_topup.disputed_micros);
    UPDATE topups t SET refunded_micros = v_seen.refunded_micros, disputed_micros = v_seen.disputed_micros,
        state = CASE WHEN v_seen.disputed_micros > 0 THEN 'disputed' WHEN v_seen.refunded_micros >= t.amount_micros THEN 'refunded'
          ELSE 'paid' END::topup_state
      WHERE t.lane = p_lane AND t.id = p_id;
    IF v_change > 0 THEN
      UPDATE accounts a SET owed_micros = a.owed_micros + v_change WHERE a.lane = p_lane AND a.id = v_topup.account_id;
      PERFORM take_owed(p_lane, v_topup.account_id, 'Reversal of top-up ' || p_id);
    ELSIF v_change < 0 THEN
      PERFORM post_movement(p_lane, v_topup.account_id, 'refund', -v_change, 'End of the reversal of top-up ' || p_id);
    END IF;
    IF v_seen.refunded_micros <> v_topup.refunded_micros THEN
      PERFORM write_topup_event(p_lane, p_id, 'topup.refunded', NULL);
    END IF;
    IF v_seen.disputed_micros <> v_topup.disputed_micros THEN
      PERFORM write_topup_event(p_lane, p_id, 'topup.disputed', NULL);
    END IF;
  END IF;
  RETURN QUERY VALUES ('applied', v_topup.account_id, alert);
END
$$;
