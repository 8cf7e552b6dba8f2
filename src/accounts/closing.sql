-- Closing an account: its end, and what is erased of it.

-- Closes an account step by step: the caller repeats the call until the status is "closed". "running": charges of calls are still
-- to come. "elsewhere": the caller is to end what the first cell and the payment provider store, and to pass p_ended_customer_id:
-- the deleted customer, empty without one, NULL before. "erasing": more rows are to be erased. p_balance is "written_off" or
-- "refunded". A closed account that a late payment was credited to can be closed again. p_is_logged is for the first step of a
-- call.
-- null: p_ended_customer_id, entry_id, month
-- status: running | elsewhere | erasing | closed
CREATE OR REPLACE FUNCTION close_account(
  p_caller caller, p_lane smallint, p_id text, p_reason text, p_balance text, p_ended_customer_id text, p_is_logged boolean,
  p_limit integer
) RETURNS TABLE (status text, entry_id text, month integer)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account accounts := require_account(p_lane, p_id);
  v_is_new boolean;
  v_entry record;
BEGIN
  status := 'closed';
  IF v_account.closed_at IS NOT NULL AND v_account.balance_micros = 0 THEN
    RETURN NEXT;
    RETURN;
  END IF;
  -- Before events are written: rows of keys are locked first.
  v_is_new := stop_account(p_lane, p_id);
  PERFORM expire_grants(p_lane, p_id);
  SELECT * INTO STRICT v_account FROM accounts a WHERE a.lane = p_lane AND a.id = p_id;
  PERFORM refuse('invalid_argument', format('must say whether the balance of {%s micros} is written off or was refunded',
    v_account.balance_micros), '{"field":"balance"}') WHERE v_account.balance_micros > 0 AND p_balance = '';
  status := CASE WHEN EXISTS (SELECT 1 FROM holds h WHERE h.lane = p_lane AND h.account_id = p_id) THEN 'running'
    WHEN p_ended_customer_id IS NULL THEN 'elsewhere'
    WHEN NOT erase_account(p_lane, p_id, p_limit) THEN 'erasing' ELSE 'closed' END;
  IF status <> 'closed' THEN
    IF p_is_logged AND (v_is_new OR status <> 'running') THEN
      PERFORM log_change(p_caller, p_lane, p_id, p_id);
    END IF;
    RETURN NEXT;
    RETURN;
  END IF;
  IF v_account.balance_micros > 0 THEN
    v_entry := post_movement(p_lane, p_id, CASE p_balance WHEN 'refunded' THEN 'refund' ELSE 'adjustment' END::entry_kind,
      -v_account.balance_micros, p_reason);
    entry_id := v_entry.id;
    month := v_entry.month;
    PERFORM write_event(p_lane, p_id, 'adjustment.posted', jsonb_build_object('entry_id', entry_id,
      'amount_micros', -v_account.balance_micros, 'balance_after_micros', 0, 'reason', p_reason));
  END IF;
  -- Servers delete the queues.
  WITH deleted AS (
    DELETE FROM webhooks w WHERE w.lane = p_lane AND w.account_id = p_id RETURNING w.id
  )
  INSERT INTO woken_queues (lane, webhook_id) SELECT p_lane, d.id FROM deleted d;
  DELETE FROM previous_secrets s USING keys k WHERE s.lane = p_lane AND k.lane = p_lane AND k.id = s.key_id AND k.account_id = p_id;
  DELETE FROM members m WHERE m.lane = p_lane AND m.account_id = p_id;
  DELETE FROM account_profiles p WHERE p.lane = p_lane AND p.account_id = p_id;
  -- A customer that a call stored meanwhile stays, until the payment provider has deleted it.
  UPDATE auto_topups s SET customer_id = nullif(s.customer_id, p_ended_customer_id), method_id = NULL, method = '', page_id = NULL, page_url = '', due_at = NULL
    WHERE s.lane = p_lane AND s.account_id = p_id;
  UPDATE accounts a SET closed_at = coalesce(a.closed_at, clock_timestamp()), name = 'closed', user_salt = NULL, low_balance_micros = NULL
    WHERE a.lane = p_lane AND a.id = p_id;
  IF p_is_logged THEN
    PERFORM log_change(p_caller, p_lane, p_id, p_id);
  END IF;
  RETURN NEXT;
END
$$;

-- Suspends an account, revokes its keys, deletes its invitations and stops its automatic top-ups, so that nothing new begins in
-- it. Returns whether anything changed. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION stop_account(p_lane smallint, p_id text) RETURNS boolean
  LANGUAGE plpgsql
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_key_ids text[];
  v_is_new boolean;
BEGIN
  UPDATE accounts SET suspended_at = v_now WHERE lane = p_lane AND id = p_id AND suspended_at IS NULL;
  v_is_new := FOUND;
  WITH revoked AS (
    UPDATE keys SET revoked_at = v_now WHERE lane = p_lane AND account_id = p_id AND revoked_at IS NULL RETURNING id
  )
  SELECT array_agg(r.id ORDER BY r.id) INTO v_key_ids FROM revoked r;
  PERFORM write_key_event(k, 'key.revoked', '{"by":"operator"}')
    FROM unnest(v_key_ids) r (id) JOIN keys k ON k.lane = p_lane AND k.id = r.id;
  -- The caller reads the members next, so no invitation may be accepted after that.
  DELETE FROM invitations WHERE lane = p_lane AND account_id = p_id;
  UPDATE auto_topups SET is_enabled = false WHERE lane = p_lane AND account_id = p_id AND is_enabled;
  IF FOUND THEN
    PERFORM write_auto_topup_event(p_lane, p_id, 'topup.auto_disabled', '', 'operator');
    PERFORM arm_auto_topup(p_lane, p_id, false);
    -- A payment that is not sent yet is not made any more.
    UPDATE topups SET next_poll_at = v_now
      WHERE lane = p_lane AND account_id = p_id AND is_automatic AND state = 'pending' AND next_poll_at IS NOT NULL;
    v_is_new := true;
  END IF;
  RETURN v_is_new OR v_key_ids IS NOT NULL;
END
$$;

-- Erases what an account has many rows of, at most p_limit rows of each table. Returns whether it erased everything. Nothing may
-- run in the account. Rows are found by their places: statistics that are older than the rows of the account would join them in
-- quadratic time.
CREATE OR REPLACE FUNCTION erase_account(p_lane smallint, p_id text, p_limit integer) RETURNS boolean
  LANGUAGE plpgsql
AS $$
DECLARE
  -- The data of events that can be about people. The other fields are ids, amounts and times.
  c_texts constant text[] := '{name,user,reason,url,email}';
  v_places tid[];
  v_most integer := 0;
BEGIN
  v_places := ARRAY(SELECT u.ctid FROM end_users u WHERE u.lane = p_lane AND u.account_id = p_id LIMIT p_limit FOR UPDATE);
  DELETE FROM end_users u WHERE u.ctid = ANY (v_places);
  v_most := greatest(v_most, cardinality(v_places));
  v_places := ARRAY(SELECT a.ctid FROM answers a WHERE a.lane = p_lane AND a.account_id = p_id LIMIT p_limit FOR UPDATE);
  DELETE FROM answers a WHERE a.ctid = ANY (v_places);
  v_most := greatest(v_most, cardinality(v_places));
  v_places := ARRAY(SELECT f.ctid FROM failures f WHERE f.lane = p_lane AND f.account_id = p_id LIMIT p_limit FOR UPDATE);
  DELETE FROM failures f WHERE f.ctid = ANY (v_places);
  v_most := greatest(v_most, cardinality(v_places));
  v_places := ARRAY(SELECT d.ctid FROM deliveries d
    WHERE d.lane = p_lane AND d.account_id = p_id
      AND d.webhook_id = ANY (ARRAY(SELECT w.id FROM webhooks w WHERE w.lane = p_lane AND w.account_id = p_id))
    LIMIT p_limit FOR UPDATE);
  DELETE FROM deliveries d WHERE d.ctid = ANY (v_places);
  v_most := greatest(v_most, cardinality(v_places));
  v_places := ARRAY(SELECT e.ctid FROM events e
    WHERE e.lane = p_lane AND e.account_id = p_id AND e.data ?| c_texts LIMIT p_limit FOR UPDATE);
  UPDATE events e SET data = e.data - c_texts WHERE e.ctid = ANY (v_places);
  v_most := greatest(v_most, cardinality(v_places));
  v_places := ARRAY(SELECT k.ctid FROM keys k
    WHERE k.lane = p_lane AND k.account_id = p_id AND (k.name <> '' OR k.allowed_cidrs IS NOT NULL) LIMIT p_limit FOR UPDATE);
  UPDATE keys k SET name = '', allowed_cidrs = NULL, playground_of = NULL WHERE k.ctid = ANY (v_places);
  v_most := greatest(v_most, cardinality(v_places));
  v_places := ARRAY(SELECT t.ctid FROM topups t
    WHERE t.lane = p_lane AND t.account_id = p_id
      AND (t.return_url, t.page_url, t.receipt_url, t.invoice_url, coalesce(t.idempotency_key, '')) <> ('', '', '', '', '') LIMIT p_limit FOR UPDATE);
  UPDATE topups t SET return_url = '', page_url = '', receipt_url = '', invoice_url = '', idempotency_key = NULL WHERE t.ctid = ANY (v_places);
  RETURN greatest(v_most, cardinality(v_places)) < p_limit;
END
$$;

-- What the closing of an account ends: numbers, the ids of its pending top-ups, and the stored payment method.
CREATE OR REPLACE FUNCTION closing_of(p_lane smallint, p_id text)
  RETURNS TABLE (active_keys bigint, webhooks bigint, pending_topups text, payment_method text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT
    (SELECT count(*) FROM keys k WHERE k.lane = p_lane AND k.account_id = p_id AND k.revoked_at IS NULL
      AND coalesce(k.expires_at, 'infinity') > clock_timestamp()),
    (SELECT count(*) FROM webhooks w WHERE w.lane = p_lane AND w.account_id = p_id),
    coalesce((SELECT string_agg(t.id, ',' ORDER BY t.id) FROM topups t
      WHERE t.lane = p_lane AND t.account_id = p_id AND t.state = 'pending'), ''),
    coalesce((SELECT s.method FROM auto_topups s WHERE s.lane = p_lane AND s.account_id = p_id), '')
$$;
