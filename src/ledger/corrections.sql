-- Corrections of charges: re-rating at other prices, and refunds.

-- The first p_limit accounts of a lane after p_after, with their names, and whether they used a model from quarter p_from until
-- before p_end.
CREATE OR REPLACE FUNCTION accounts_with_model(
  p_lane smallint, p_model text, p_from integer, p_end integer, p_after text, p_limit integer
) RETURNS TABLE (account_id text, account_name text, has_used boolean)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT require_lane(p_lane);
  -- As a value, the query about the usage reads the sums of one account; EXISTS may read those of all.
  SELECT a.id, a.name, (
      SELECT true FROM usage_quarters u WHERE u.lane = p_lane AND u.account_id = a.id AND u.quarter >= p_from AND u.quarter < p_end
        AND u.model = p_model LIMIT 1) IS NOT NULL
    FROM (SELECT i.id, i.name FROM accounts i WHERE i.lane = p_lane AND i.id > p_after ORDER BY i.id LIMIT p_limit) a
    ORDER BY a.id;
$$;

-- Compares the charges of a model, in at most p_limit entries of an account from p_first until before p_end, with other prices at
-- the discount that the account had; next_seq is NULL after the last one. With p_apply, each difference becomes an adjustment,
-- once for a cause; one that the free balance does not cover is refused. Charges at the account's own prices are skipped. A
-- refund keeps its amount. A closed account has no differences, because nobody could use a credit.
-- null: next_seq
CREATE OR REPLACE FUNCTION rerate_entries(
  p_caller caller, p_lane smallint, p_account_id text, p_first bigint, p_end bigint, p_model text, p_rates price_rates[], p_cause text,
  p_reason text, p_apply boolean, p_limit integer
) RETURNS TABLE (
    adjusted bigint, credit_micros bigint, debit_micros bigint, refused bigint, refused_micros bigint, skipped bigint, next_seq bigint
  )
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
  SET enable_seqscan = off
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, CASE WHEN p_apply THEN p_lane ELSE no_lane() END);
  v_free bigint;
  v_is_closed boolean;
  v_micros bigint;
  v_read integer := 0;
  r record;
BEGIN
  IF p_apply THEN
    PERFORM lock_account(p_lane, p_account_id);
  END IF;
  SELECT a.balance_micros - a.held_micros, a.closed_at IS NOT NULL, 0, 0, 0, 0, 0, 0
    INTO v_free, v_is_closed, adjusted, credit_micros, debit_micros, refused, refused_micros, skipped
    FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id;
  IF v_is_closed THEN
    RETURN NEXT;
    RETURN;
  END IF;
  FOR r IN
    SELECT l.seq, l.kind = 'generation' AND l.model = p_model AS is_rated, l.entry, a.rates IS NOT NULL AS has_own,
           charge_of(l.input, l.cached_input, l.cache_write, l.cache_write_1h, l.output, l.reasoning, l.images,
             ROW(n.*)::price_rates, a.discount) AS charge
    FROM (
      SELECT e.*, e AS entry FROM ledger e WHERE e.lane = p_lane AND e.account_id = p_account_id AND e.seq >= p_first AND e.seq < p_end
      ORDER BY e.seq LIMIT p_limit
    ) l
    LEFT JOIN account_prices a ON a.lane = l.lane AND a.account_id = l.account_id AND a.version = l.price_list_version
    CROSS JOIN LATERAL rates_of(p_rates, l.input + l.cached_input + l.cache_write) n
    ORDER BY l.seq
  LOOP
    v_read := v_read + 1;
    next_seq := r.seq + 1;
    CONTINUE WHEN NOT r.is_rated OR EXISTS (SELECT 1 FROM entry_adjustments x
      WHERE x.lane = p_lane AND x.account_id = p_account_id AND x.entry_id = (r.entry).id AND x.cause = p_cause);
    IF r.has_own THEN
      skipped := skipped + 1;
      CONTINUE;
    END IF;
    v_micros := net_charge(r.entry) - greatest(0, r.charge - coalesce((SELECT sum(x.amount_micros) FROM entry_adjustments x
      WHERE x.lane = p_lane AND x.account_id = p_account_id AND x.entry_id = (r.entry).id AND x.refund_micros IS NOT NULL), 0));
    CONTINUE WHEN v_micros = 0;
    IF v_free + v_micros < 0 THEN
      refused := refused + 1;
      refused_micros := refused_micros - v_micros;
      CONTINUE;
    END IF;
    IF p_apply THEN
      PERFORM adjust_entry(r.entry, p_cause, v_micros, p_reason, NULL);
      -- What becomes free may be taken at once for reversed payments.
      SELECT a.balance_micros - a.held_micros INTO v_free FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id;
    ELSE
      v_free := v_free + v_micros;
    END IF;
    adjusted := adjusted + 1;
    credit_micros := credit_micros + greatest(v_micros, 0);
    debit_micros := debit_micros - least(v_micros, 0);
  END LOOP;
  IF v_read < p_limit THEN
    next_seq := NULL;
  END IF;
  IF p_apply AND adjusted > 0 THEN
    PERFORM log_change(p_caller, p_lane, p_account_id, p_account_id);
  END IF;
  RETURN NEXT;
END
$$;

-- Gives back a part of the charge of a generation; all that is left of it if p_micros is 0. The same idempotency key does it
-- once, and returns the entry of the refund.
CREATE OR REPLACE FUNCTION refund_entry(
  p_caller caller, p_lane smallint, p_account_id text, p_entry_id text, p_month integer, p_micros bigint, p_reason text,
  p_idempotency_key text
) RETURNS SETOF priced_ledger
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account constant accounts := require_account(p_lane, p_account_id);
  v_row ledger := movement_of_key(p_lane, p_account_id, p_idempotency_key);
  v_entry ledger;
  v_net bigint;
  v_micros bigint;
BEGIN
  IF v_row.id IS NOT NULL THEN
    PERFORM refuse('idempotency_key_reused',
      format('This idempotency key was used for another movement, ledger row %s.', v_row.seq))
      WHERE v_row.reason <> p_reason OR NOT EXISTS (SELECT 1 FROM entry_adjustments x
        WHERE x.lane = p_lane AND x.account_id = p_account_id AND x.entry_id = p_entry_id AND x.adjustment_id = v_row.id
          AND x.refund_micros = p_micros);
    RETURN QUERY SELECT * FROM get_entry(p_lane, p_account_id, v_row.id, v_row.month);
    RETURN;
  END IF;
  PERFORM require_open_account(p_lane, p_account_id);
  SELECT l.* INTO v_entry FROM ledger l
    WHERE l.lane = p_lane AND l.id = p_entry_id AND l.month = p_month AND l.account_id = p_account_id AND l.kind = 'generation';
  PERFORM refuse('not_found', 'The account has no charged generation with this id; entries of archived months cannot be refunded.')
    WHERE NOT FOUND;
  v_net := net_charge(v_entry);
  v_micros := CASE p_micros WHEN 0 THEN v_net ELSE p_micros END;
  PERFORM refuse('invalid_argument', format('at most {%s micros} of the charge of this generation can be refunded', v_net),
    '{"field":"amount_micros"}') WHERE v_micros > v_net OR v_micros <= 0;
  PERFORM refuse('invalid_argument', 'a balance can be at most {9000000000000000 micros}', '{"field":"amount_micros"}')
    WHERE v_account.balance_micros + v_micros > 9000000000000000;
  v_row := adjust_entry(v_entry, 'key_' || p_idempotency_key, v_micros, p_reason, p_micros);
  INSERT INTO movement_keys (lane, account_id, idempotency_key, seq, month)
    VALUES (p_lane, p_account_id, p_idempotency_key, v_row.seq, v_row.month);
  PERFORM log_change(p_caller, p_lane, p_account_id, p_account_id);
  RETURN QUERY SELECT * FROM get_entry(p_lane, p_account_id, v_row.id, v_row.month);
END
$$;

-- What a generation costs its account after all corrections.
CREATE OR REPLACE FUNCTION net_charge(p_entry ledger) RETURNS bigint
  LANGUAGE sql STABLE
  RETURN -p_entry.amount_micros - coalesce((SELECT sum(x.amount_micros) FROM entry_adjustments x
    WHERE x.lane = p_entry.lane AND x.account_id = p_entry.account_id AND x.entry_id = p_entry.id), 0);

-- Corrects the charge of a generation by an entry of its own, and returns that. The caller holds the lane and has checked the
-- balance and the cause. p_refund_micros is the amount that a refund asked for, NULL for a re-rating.
CREATE OR REPLACE FUNCTION adjust_entry(p_entry ledger, p_cause text, p_micros bigint, p_reason text, p_refund_micros bigint)
  RETURNS ledger
  LANGUAGE plpgsql
AS $$
DECLARE
  v_new record;
  v_row ledger;
BEGIN
  v_new := post_movement(p_entry.lane, p_entry.account_id, 'adjustment', p_micros, p_reason, p_entry.id);
  SELECT l.* INTO STRICT v_row FROM ledger l
    WHERE l.lane = p_entry.lane AND l.account_id = p_entry.account_id AND l.id = v_new.id AND l.month = v_new.month;
  INSERT INTO entry_adjustments
    VALUES (v_row.lane, v_row.account_id, p_entry.id, p_cause, v_row.id, v_row.month, p_micros, p_refund_micros);
  PERFORM write_event(v_row.lane, v_row.account_id, 'adjustment.posted', jsonb_build_object('entry_id', v_row.id,
    'amount_micros', p_micros, 'balance_after_micros', v_row.balance_after_micros, 'reason', p_reason));
  RETURN v_row;
END
$$;
