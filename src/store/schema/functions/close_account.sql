-- Closes an account step by step: the caller repeats the call until the status is "closed", and can stop after any call.
-- "running": calls run, whose charges are still to come. "elsewhere": the caller is to end what the first cell and the payment
-- provider store, and to repeat the call with p_ended_customer_id: the deleted customer of the payment provider, empty without one, NULL
-- before. "erasing": more rows are to be erased. Each call first refuses new calls of the account.
-- p_balance says what becomes of a balance: "written_off" or "refunded". The row of the ledger and the erasure of the name are in the
-- transaction that closes the account. A closed account that a late payment was credited to can be closed again. p_is_logged is
-- for the first step of a call.
CREATE OR REPLACE FUNCTION close_account(
  p_caller caller, p_lane smallint, p_id text, p_reason text, p_balance text, p_ended_customer_id text, p_is_logged boolean,
  p_limit integer
) RETURNS TABLE (status text, entry_id text, month integer)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account accounts := require_account(p_lane, p_id);
  v_now constant timestamptz := clock_timestamp();
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
  IF v_account.balance_micros > 0 AND p_balance = '' THEN
    PERFORM refuse('invalid_argument', format('must say whether the balance of {%s micros} is written off or was refunded',
      v_account.balance_micros), '{"field":"balance"}');
  END IF;
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
  UPDATE accounts a SET closed_at = coalesce(a.closed_at, v_now), name = 'closed', user_salt = NULL, low_balance_micros = NULL
    WHERE a.lane = p_lane AND a.id = p_id;
  IF p_is_logged THEN
    PERFORM log_change(p_caller, p_lane, p_id, p_id);
  END IF;
  RETURN NEXT;
END
$$;
