-- Automatic top-ups: their settings, and when one starts or ends.

-- The automatic top-ups of an account. No row before their settings were changed or a customer was stored.
CREATE OR REPLACE FUNCTION get_auto_topup(p_lane smallint, p_account_id text) RETURNS SETOF auto_topup_view
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT s.account_id, s.is_enabled, s.threshold_micros, s.amount_micros, s.monthly_max_micros, s.failures, s.last_failure,
      s.customer_id, s.method_id, s.method, s.page_id, s.page_url, s.page_created_at, auto_topup_month(p_lane, p_account_id),
      coalesce((SELECT t.id FROM topups t
        WHERE t.lane = p_lane AND t.account_id = p_account_id AND t.is_automatic AND t.state = 'pending'), '')
    FROM auto_topups s WHERE s.lane = p_lane AND s.account_id = p_account_id
$$;

-- Sets the automatic top-ups of an account. The amounts are kept when they are disabled. A key of the account may only lower and
-- stop them.
CREATE OR REPLACE FUNCTION put_auto_topup(
  p_caller caller, p_lane smallint, p_account_id text, p_is_enabled boolean, p_threshold_micros bigint, p_amount_micros bigint,
  p_monthly_max_micros bigint, p_currency text
) RETURNS SETOF auto_topup_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_old auto_topups;
BEGIN
  PERFORM require_open_account(p_lane, p_account_id);
  SELECT s.* INTO v_old FROM auto_topups s WHERE s.lane = p_lane AND s.account_id = p_account_id;
  PERFORM refuse('insufficient_scope',
    'A key can only lower and stop automatic top-ups. To start or to raise them, sign in to the account page or ask the operator of this service.')
    WHERE p_caller.kind = 'key' AND p_is_enabled AND (v_old.is_enabled IS NOT TRUE OR p_threshold_micros > v_old.threshold_micros
      OR p_amount_micros > v_old.amount_micros OR p_monthly_max_micros > v_old.monthly_max_micros);
  IF p_is_enabled THEN
    INSERT INTO auto_topups AS s (lane, account_id, is_enabled, threshold_micros, amount_micros, monthly_max_micros, currency)
      VALUES (p_lane, p_account_id, true, p_threshold_micros, p_amount_micros, p_monthly_max_micros, p_currency)
      ON CONFLICT ON CONSTRAINT auto_topups_pkey DO UPDATE SET is_enabled = true, threshold_micros = excluded.threshold_micros,
        amount_micros = excluded.amount_micros, monthly_max_micros = excluded.monthly_max_micros, currency = excluded.currency,
        full_until = NULL, failures = CASE WHEN s.is_enabled THEN s.failures ELSE 0 END;
  ELSIF v_old.is_enabled THEN
    UPDATE auto_topups SET is_enabled = false WHERE lane = p_lane AND account_id = p_account_id;
    PERFORM write_auto_topup_event(p_lane, p_account_id, 'topup.auto_disabled', '', actor_kind(p_caller));
  END IF;
  PERFORM arm_auto_topup(p_lane, p_account_id, p_is_enabled);
  -- A payment that is not sent yet may have become too high.
  UPDATE topups SET next_poll_at = clock_timestamp()
    WHERE lane = p_lane AND account_id = p_account_id AND is_automatic AND state = 'pending' AND next_poll_at IS NOT NULL;
  PERFORM log_change(p_caller, p_lane, p_account_id, p_account_id);
  RETURN QUERY SELECT * FROM get_auto_topup(p_lane, p_account_id);
END
$$;

-- Stores the customer at the provider, and the page for a payment method. The first customer stays, unless it is p_replaced. Of a
-- closed account, only the customer is stored, for forget_customer, and no row is returned.
-- null: p_replaced, p_page_id, p_page_url
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

-- Applies the state of a page for a payment method, as a server read it from the provider. p_method_id is NULL if none was
-- stored; p_is_over if the page can store none any more. A page of another installation is ignored.
-- null: p_method_id, p_method
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

-- Forgets the customer of a closed account, after the payment provider deleted it.
CREATE OR REPLACE FUNCTION forget_customer(p_lane smallint, p_account_id text, p_customer_id text) RETURNS void
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT lock_account(p_lane, p_account_id);
  UPDATE auto_topups s SET customer_id = NULL
    WHERE s.lane = p_lane AND s.account_id = p_account_id AND s.customer_id = p_customer_id;
$$;

-- Accounts whose page for a payment method should be looked up now, or whose month with too many automatic top-ups is over; at
-- most p_limit. Each is returned to one server.
CREATE OR REPLACE FUNCTION auto_topups_due(p_limit integer) RETURNS TABLE (account_id text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_elsewhere constant smallint[] := ARRAY(SELECT l.lane FROM lanes l WHERE NOT l.is_owned);
BEGIN
  RETURN QUERY UPDATE auto_topups s SET due_at = v_now + interval '1 minute'
    FROM (SELECT o.lane, o.account_id FROM auto_topups o
      WHERE o.due_at <= v_now AND o.lane <> ALL (v_elsewhere)
      ORDER BY o.due_at LIMIT p_limit FOR UPDATE SKIP LOCKED) due
    WHERE s.lane = due.lane AND s.account_id = due.account_id
    RETURNING s.account_id;
END
$$;

-- How an automatic top-up is paid, and whether the settings and the account still allow it. A payment that is late is not made if
-- the balance has risen meanwhile.
CREATE OR REPLACE FUNCTION topup_charge(p_lane smallint, p_id text) RETURNS TABLE (is_allowed boolean, customer_id text, method_id text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account_id constant text := (SELECT t.account_id FROM topups t WHERE t.lane = p_lane AND t.id = p_id);
BEGIN
  PERFORM lock_account(p_lane, v_account_id);
  RETURN QUERY SELECT t.state = 'pending' AND s.is_enabled AND t.amount_micros <= s.amount_micros AND a.owed_micros = 0
      AND a.suspended_at IS NULL AND auto_topup_month(p_lane, v_account_id) <= s.monthly_max_micros
        AND (a.balance_micros - a.held_micros < s.threshold_micros OR t.created_at > clock_timestamp() - interval '10 minutes'),
      s.customer_id, s.method_id
    FROM topups t JOIN auto_topups s ON s.lane = t.lane AND s.account_id = t.account_id
      JOIN accounts a ON a.lane = t.lane AND a.id = t.account_id
    WHERE t.lane = p_lane AND t.id = p_id;
END
$$;

-- Lets automatic top-ups start again after their month is over.
CREATE OR REPLACE FUNCTION resume_auto_topup(p_lane smallint, p_account_id text) RETURNS void
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT lock_account(p_lane, p_account_id);
  SELECT arm_auto_topup(p_lane, p_account_id, true);
$$;

-- Starts an automatic top-up after a call was refused, if less than the threshold is free.
CREATE OR REPLACE FUNCTION top_up_after_refusal(p_lane smallint, p_account_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account constant accounts := lock_account(p_lane, p_account_id);
  v_expired constant bigint := expired_credit(p_lane, p_account_id, clock_timestamp());
BEGIN
  IF v_account.balance_micros - v_expired - v_account.held_micros < v_account.auto_topup_below_micros THEN
    PERFORM start_auto_topup(p_lane, p_account_id);
  END IF;
END
$$;

-- Lets the next charge or refused call below the threshold start an automatic top-up, if the settings allow one; starts one at
-- once if p_may_start and the balance is below. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION arm_auto_topup(p_lane smallint, p_account_id text, p_may_start boolean) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_is_below boolean;
BEGIN
  UPDATE auto_topups s SET due_at = least(CASE WHEN s.full_until > v_now THEN s.full_until END, CASE WHEN s.page_id IS NOT NULL
      THEN v_now + least(greatest(v_now - s.page_created_at, interval '1 minute'), interval '1 hour') END)
    WHERE s.lane = p_lane AND s.account_id = p_account_id;
  UPDATE accounts a SET auto_topup_below_micros = s.threshold_micros
    FROM auto_topups s
    WHERE a.lane = p_lane AND a.id = p_account_id AND s.lane = p_lane AND s.account_id = p_account_id AND s.is_enabled
      AND s.method_id IS NOT NULL AND coalesce(s.full_until <= v_now, true) AND NOT EXISTS (SELECT 1 FROM topups t
        WHERE t.lane = p_lane AND t.account_id = p_account_id AND t.is_automatic AND t.state = 'pending')
    RETURNING a.balance_micros < a.auto_topup_below_micros INTO v_is_below;
  IF v_is_below IS NULL THEN
    UPDATE accounts SET auto_topup_below_micros = NULL WHERE lane = p_lane AND id = p_account_id;
  ELSIF p_may_start AND v_is_below THEN
    PERFORM start_auto_topup(p_lane, p_account_id);
  END IF;
END
$$;

-- Starts an automatic top-up of an account whose balance is below its threshold: a server pays it. Starts none beyond the monthly
-- maximum, or while the account owes something or is suspended. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION start_auto_topup(p_lane smallint, p_account_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_month_end constant timestamptz := (date_trunc('month', v_now AT TIME ZONE 'UTC') + interval '1 month') AT TIME ZONE 'UTC';
  v_auto auto_topups;
BEGIN
  SELECT s.* INTO v_auto FROM auto_topups s JOIN accounts a ON a.lane = s.lane AND a.id = s.account_id
    WHERE s.lane = p_lane AND s.account_id = p_account_id AND a.auto_topup_below_micros IS NOT NULL AND a.owed_micros = 0
      AND a.suspended_at IS NULL;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  UPDATE accounts SET auto_topup_below_micros = NULL WHERE lane = p_lane AND id = p_account_id;
  IF auto_topup_month(p_lane, p_account_id) + v_auto.amount_micros > v_auto.monthly_max_micros THEN
    UPDATE auto_topups SET full_until = v_month_end, due_at = least(due_at, v_month_end)
      WHERE lane = p_lane AND account_id = p_account_id;
    PERFORM write_auto_topup_event(p_lane, p_account_id, 'topup.auto_failed', '', 'monthly_max_reached');
  ELSE
    INSERT INTO topups (lane, id, account_id, state, amount_micros, currency, return_url, created_at, next_poll_at, is_automatic)
      VALUES (p_lane, 'top' || substr(event_id(p_lane, v_now), 4), p_account_id, 'pending', v_auto.amount_micros, v_auto.currency, '',
        v_now, v_now, true);
  END IF;
END
$$;

-- What the automatic top-ups of this month, in UTC, add up to: those that are paid or not decided yet.
CREATE OR REPLACE FUNCTION auto_topup_month(p_lane smallint, p_account_id text) RETURNS bigint
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN (SELECT coalesce(sum(t.amount_micros), 0) FROM topups t
    WHERE t.lane = p_lane AND t.account_id = p_account_id AND t.is_automatic
      AND t.created_at >= date_trunc('month', statement_timestamp(), 'UTC') AND t.state NOT IN ('failed', 'expired'));
END
$$;

-- What follows from the end of an automatic top-up: the third failure in a row disables them. p_failure is empty after a payment,
-- "stopped" if the settings had changed, "no_answer" if the provider did not answer within a day. The caller holds the lane.
CREATE OR REPLACE FUNCTION end_auto_topup(p_lane smallint, p_account_id text, p_topup_id text, p_failure text) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  c_max_failures constant integer := 3;
  v_failures smallint;
BEGIN
  UPDATE auto_topups s SET last_failure = p_failure,
      failures = CASE p_failure WHEN '' THEN 0 WHEN 'stopped' THEN s.failures WHEN 'no_answer' THEN s.failures ELSE s.failures + 1 END
    WHERE s.lane = p_lane AND s.account_id = p_account_id
    RETURNING s.failures INTO v_failures;
  IF p_failure <> '' THEN
    PERFORM write_auto_topup_event(p_lane, p_account_id, 'topup.auto_failed', p_topup_id, p_failure);
  END IF;
  IF v_failures >= c_max_failures THEN
    UPDATE auto_topups s SET is_enabled = false WHERE s.lane = p_lane AND s.account_id = p_account_id AND s.is_enabled;
    IF FOUND THEN
      PERFORM write_auto_topup_event(p_lane, p_account_id, 'topup.auto_disabled', p_topup_id, 'failures');
    END IF;
  END IF;
  PERFORM arm_auto_topup(p_lane, p_account_id, false);
END
$$;

-- Writes an event about the automatic top-ups of an account. p_topup_id is empty for an event that is about none.
CREATE OR REPLACE FUNCTION write_auto_topup_event(p_lane smallint, p_account_id text, p_type text, p_topup_id text, p_reason text)
  RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM write_event(p_lane, p_account_id, p_type, jsonb_build_object('topup_id', p_topup_id, 'reason', p_reason,
      'failures', s.failures, 'amount_micros', s.amount_micros, 'monthly_max_micros', s.monthly_max_micros,
      'balance_micros', a.balance_micros))
    FROM auto_topups s JOIN accounts a ON a.lane = s.lane AND a.id = s.account_id
    WHERE s.lane = p_lane AND s.account_id = p_account_id;
END
$$;
