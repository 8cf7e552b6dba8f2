-- Compares the charges of a model, in the entries of an account from p_first until before p_end, with other prices of the model, at
-- the discount that the account had. Without p_apply, only counts. With it, each difference becomes an adjustment of its own; a cause
-- adjusts a generation once. An amount that the account owes and its free balance does not cover is refused. Generations that were
-- charged at the account's own prices are skipped. A refund keeps its amount: it is subtracted from the new charge too. Reads at most
-- p_limit entries; next_seq is NULL after the last one. A closed account has no differences, because nobody could use a credit.
CREATE OR REPLACE FUNCTION rerate_entries(
  p_caller caller, p_lane smallint, p_account_id text, p_first bigint, p_end bigint, p_model text, p_rates price_rates[], p_cause text,
  p_reason text, p_apply boolean, p_limit integer
) RETURNS TABLE (
    adjusted bigint, credit_micros bigint, debit_micros bigint, refused bigint, refused_micros bigint, skipped bigint, next_seq bigint
  )
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
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
