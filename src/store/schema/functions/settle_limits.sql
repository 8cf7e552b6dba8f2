-- Releases what an ended hold held of counters, and adds a charge to the counters of all limits that apply to it now: also of those
-- that were set while the call ran. Amounts held of a removed limit are dropped. p_counters and p_places are those of the call, NULL
-- without a charge; p_changed are those that earlier items of the batch have changed, at p_changed_places. Writes the events
-- of the thresholds that the charge crosses. Returns the changed counters. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION settle_limits(
  p_lane smallint, p_account_id text, p_places tid[], p_counters limit_counter[], p_changed_places tid[], p_changed limit_counter[],
  p_held held_counter[], p_model text, p_user text, p_cost bigint, p_tokens bigint, p_at timestamptz
) RETURNS call_counters
  LANGUAGE plpgsql
AS $$
DECLARE
  v_places tid[] := p_places;
  v_counters limit_counter[] := p_counters;
  v_charged constant integer := coalesce(cardinality(p_counters), 0);
  v_released constant integer := coalesce(cardinality(p_held), 0);
  v_settled_places tid[];
  v_settled limit_counter[];
  v_is_known boolean;
  -- What the hold held of the current counter.
  v_ids text[];
  v_amounts bigint[];
  v_held bigint[];
  v_spent bigint[];
  v_is_changed boolean;
  h held_counter;
  c limit_counter;
  r record;
BEGIN
  FOR m IN 1..v_released LOOP
    h := p_held[m];
    v_is_known := false;
    FOR n IN 1..v_charged LOOP
      c := p_counters[n];
      v_is_known := v_is_known OR (c.subject_id = h.subject_id AND c.plan = h.plan AND c.user_id = h.user_id);
    END LOOP;
    -- There is no charge, the plan of the key has changed, or a limit was removed.
    IF NOT v_is_known THEN
      SELECT i.ctid, i.counter INTO r FROM limit_counters i
        WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.subject_id = h.subject_id AND i.plan = h.plan
          AND i.user_id = h.user_id;
      IF FOUND THEN
        v_places := array_append(v_places, r.ctid);
        v_counters := array_append(v_counters, r.counter);
      END IF;
    END IF;
  END LOOP;
  FOR n IN 1..coalesce(cardinality(v_counters), 0) LOOP
    c := v_counters[n];
    IF v_places[n] = ANY (p_changed_places) THEN
      c := p_changed[array_position(p_changed_places, v_places[n])];
    END IF;
    IF n <= v_charged AND p_at >= ANY (c.window_ends) THEN
      c := restart_windows(c, p_at);
    END IF;
    v_held := c.held;
    v_spent := c.spent;
    v_ids := NULL;
    FOR m IN 1..v_released LOOP
      h := p_held[m];
      IF c.subject_id = h.subject_id AND c.plan = h.plan AND c.user_id = h.user_id THEN
        v_ids := h.limit_ids;
        v_amounts := h.amounts;
      END IF;
    END LOOP;
    v_is_changed := v_ids IS NOT NULL;
    FOR i IN 1..cardinality(v_held) LOOP
      IF v_ids IS NOT NULL THEN
        v_held[i] := v_held[i] - coalesce(v_amounts[
          CASE WHEN v_ids[i] = c.limit_ids[i] THEN i ELSE array_position(v_ids, c.limit_ids[i]) END], 0);
      END IF;
      IF n > v_charged OR c.models[i] NOT IN ('', p_model) OR (c.per_users[i] AND c.user_id = '' AND p_user <> '') THEN
        CONTINUE;
      END IF;
      v_is_changed := true;
      v_spent[i] := v_spent[i] + CASE c.metrics[i] WHEN 'cost' THEN p_cost WHEN 'cost_alert' THEN p_cost
        WHEN 'tokens' THEN p_tokens WHEN 'generations' THEN 1 ELSE 0 END;
      IF c.spent[i] < c.amounts[i] AND v_spent[i] * 5 >= c.amounts[i] * 4 THEN
        PERFORM write_limit_events(p_lane, p_account_id, p_user, c, i, v_spent[i]);
      END IF;
    END LOOP;
    IF v_is_changed THEN
      c.held := v_held;
      c.spent := v_spent;
      v_settled_places := array_append(v_settled_places, v_places[n]);
      v_settled := array_append(v_settled, c);
    END IF;
  END LOOP;
  RETURN ROW(v_settled_places, v_settled, true)::call_counters;
END
$$;
