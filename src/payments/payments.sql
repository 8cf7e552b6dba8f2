-- Top-ups, and what payments do to them.

-- Creates a top-up that is not paid yet, once per idempotency key. With p_has_default_url, the caller sent no p_return_url, and
-- the server, which may not be that of a repetition, added its own.
-- null: p_idempotency_key
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
    PERFORM refuse('idempotency_key_reused')
      WHERE (v_topup.amount_micros, v_topup.has_default_url) <> (p_amount_micros, p_has_default_url)
        OR NOT p_has_default_url AND v_topup.return_url <> p_return_url;
    RETURN NEXT v_topup;
    RETURN;
  END IF;
  PERFORM refuse('topup_limit_reached')
    WHERE c_max_pending <= (SELECT count(*) FROM topups t
      WHERE t.lane = p_lane AND t.account_id = v_account.id AND t.state = 'pending');
  PERFORM log_change(p_caller, p_lane, p_id, p_account_id);
  RETURN QUERY INSERT INTO topups (lane, id, account_id, state, amount_micros, currency, return_url, has_default_url,
      idempotency_key, created_at, next_poll_at)
    VALUES (p_lane, p_id, v_account.id, 'pending', p_amount_micros, p_currency, p_return_url, p_has_default_url,
      p_idempotency_key, clock_timestamp(), clock_timestamp() + interval '1 minute')
    RETURNING *;
END
$$;

-- The top-up with this id, of this account if one is given.
CREATE OR REPLACE FUNCTION get_topup(p_lane smallint, p_account_id text, p_id text) RETURNS SETOF topups
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT t.* FROM topups t WHERE t.lane = p_lane AND t.id = p_id AND p_account_id IN ('', t.account_id)
$$;

-- The top-ups of an account, or of all if none is given, before the given one, newest first: with a state, or all if it is empty,
-- and only those whose payment differs from them if p_only_problems. An empty p_before means the first page.
-- null: p_lane, p_account_id
CREATE OR REPLACE FUNCTION list_topups(
  p_lane smallint, p_account_id text, p_state text, p_only_problems boolean, p_before text, p_limit integer
) RETURNS SETOF topups
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  IF p_account_id IS NOT NULL THEN
    RETURN QUERY SELECT t.* FROM topups t
      WHERE t.lane = p_lane AND t.account_id = p_account_id AND (p_before = '' OR t.id < p_before)
        AND (p_state = '' OR t.state::text = p_state) AND (NOT p_only_problems OR t.problem <> '')
      ORDER BY t.id DESC LIMIT p_limit;
    RETURN;
  END IF;
  RETURN QUERY SELECT t.* FROM topups t
    WHERE (p_state = '' OR t.state = nullif(p_state, '')::topup_state) AND (NOT p_only_problems OR t.problem <> '')
      AND (p_before = '' OR t.id COLLATE "C" < p_before)
    ORDER BY t.id COLLATE "C" DESC LIMIT p_limit;
END
$$;

-- Stores the page of a top-up on which the customer pays. A repetition changes nothing.
CREATE OR REPLACE FUNCTION set_topup_page(p_lane smallint, p_id text, p_page_id text, p_page_url text) RETURNS SETOF topups
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT require_lane(p_lane);
  UPDATE topups SET page_id = p_page_id, page_url = p_page_url WHERE lane = p_lane AND id = p_id AND page_id IS NULL;
  SELECT t.* FROM topups t WHERE t.lane = p_lane AND t.id = p_id;
$$;

-- Stores the payment of an automatic top-up, before it is made. The first one stays. A state that was read without it
-- is not applied any more.
CREATE OR REPLACE FUNCTION set_topup_payment(p_lane smallint, p_id text, p_payment_id text) RETURNS SETOF topups
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT require_lane(p_lane);
  UPDATE topups SET payment_id = p_payment_id, version = version + 1
    WHERE lane = p_lane AND id = p_id AND payment_id IS NULL AND is_automatic AND state = 'pending';
  SELECT t.* FROM topups t WHERE t.lane = p_lane AND t.id = p_id;
$$;

-- Pending top-ups whose payment should be looked up now, at most p_limit. Each is returned to one server; the waits double, up to
-- an hour.
CREATE OR REPLACE FUNCTION topups_to_poll(p_limit integer) RETURNS TABLE (id text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_elsewhere constant smallint[] := ARRAY(SELECT l.lane FROM lanes l WHERE NOT l.is_owned);
BEGIN
  RETURN QUERY UPDATE topups t SET next_poll_at = v_now + least(greatest(v_now - t.created_at, interval '1 minute'), interval '1 hour')
    FROM (SELECT o.lane, o.id FROM topups o
      WHERE o.next_poll_at <= v_now AND o.lane <> ALL (v_elsewhere)
      ORDER BY o.next_poll_at LIMIT p_limit FOR UPDATE SKIP LOCKED) due
    WHERE t.lane = due.lane AND t.id = due.id
    RETURNING t.id;
END
$$;

-- Applies the state of a payment that a server read before p_version of its top-up changed: credits it once, and takes back what
-- the provider gave back. alert is empty, or what operators are told: what differs, "late", "suspended" or "closed".
-- outcome: applied | stale | unknown
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

-- Writes an event with the current state of a top-up. p_entry_id is the ledger row of its credit, if the event is about that.
CREATE OR REPLACE FUNCTION write_topup_event(p_lane smallint, p_id text, p_type text, p_entry_id text) RETURNS void
  LANGUAGE sql
AS $$
  SELECT write_event(p_lane, t.account_id, p_type, jsonb_build_object('topup_id', t.id, 'state', t.state, 'automatic', t.is_automatic,
      'amount_micros', t.amount_micros, 'refunded_micros', t.refunded_micros, 'disputed_micros', t.disputed_micros,
      'entry_id', coalesce(p_entry_id, ''), 'balance_micros', a.balance_micros, 'owed_micros', a.owed_micros))
    FROM topups t JOIN accounts a ON a.lane = t.lane AND a.id = t.account_id WHERE t.lane = p_lane AND t.id = p_id
$$;
