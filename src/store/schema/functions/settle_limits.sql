-- Releases what an ended hold held of counters, and adds a charge to the counters of all limits that apply to it now: also of those
-- that were set while the call ran. What was held of a removed limit is forgotten. p_counters are those of the call, NULL without a
-- charge; p_changed and p_places are as in check_limits. Returns the changed counters. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION settle_limits(
  p_lane smallint, p_account_id text, p_counters limit_counter[], p_held held_counter[], p_changed limit_counter[], p_places tid[],
  p_model text, p_user_id text, p_cost bigint, p_tokens bigint, p_at timestamptz
) RETURNS limit_counter[]
  LANGUAGE plpgsql
AS $$
DECLARE
  v_counters limit_counter[] := p_counters;
  v_charged constant integer := coalesce(cardinality(p_counters), 0);
  v_is_known boolean;
  -- What the hold held of the current counter.
  v_ids text[];
  v_amounts bigint[];
  v_place integer;
  v_held bigint[];
  v_spent bigint[];
  h held_counter;
  c limit_counter;
BEGIN
  IF p_held IS NOT NULL THEN
    FOREACH h IN ARRAY p_held LOOP
      v_is_known := false;
      FOR i IN 1..v_charged LOOP
        c := p_counters[i];
        v_is_known := v_is_known OR (c.subject_id = h.subject_id AND c.plan = h.plan AND c.user_id = h.user_id);
      END LOOP;
      -- The plan of the key has changed, or a limit was removed.
      IF NOT v_is_known THEN
        v_counters := v_counters || ARRAY(
          SELECT ROW(i.ctid, i.subject_id, i.plan, i.user_id, i.limit_ids, i.metrics, i.periods, i.models, i.per_users, i.amounts,
            i.window_ends, i.spent, i.held, i.counted_since)::limit_counter
          FROM limit_counters i WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.subject_id = h.subject_id
            AND i.plan = h.plan AND i.user_id = h.user_id);
      END IF;
    END LOOP;
  END IF;
  FOR n IN 1..coalesce(cardinality(v_counters), 0) LOOP
    c := v_counters[n];
    IF c.place = ANY (p_places) THEN
      c := p_changed[array_position(p_places, c.place)];
    END IF;
    v_ids := NULL;
    IF p_held IS NOT NULL THEN
      FOREACH h IN ARRAY p_held LOOP
        IF c.subject_id = h.subject_id AND c.plan = h.plan AND c.user_id = h.user_id THEN
          v_ids := h.limit_ids;
          v_amounts := h.amounts;
        END IF;
      END LOOP;
    END IF;
    v_held := c.held;
    v_spent := c.spent;
    FOR i IN 1..cardinality(v_held) LOOP
      IF v_ids IS NOT NULL THEN
        v_place := CASE WHEN v_ids[i] = c.limit_ids[i] THEN i ELSE array_position(v_ids, c.limit_ids[i]) END;
        v_held[i] := v_held[i] - coalesce(v_amounts[v_place], 0);
      END IF;
      IF n > v_charged OR c.models[i] NOT IN ('', p_model) OR (c.per_users[i] AND c.user_id = '' AND p_user_id <> '') THEN
        CONTINUE;
      END IF;
      IF c.window_ends[i] <= p_at THEN
        c.window_ends[i] := window_end(c.periods[i], p_at);
        c.counted_since[i] := '-infinity';
        v_spent[i] := 0;
      END IF;
      v_spent[i] := v_spent[i] + CASE c.metrics[i] WHEN 'cost' THEN p_cost WHEN 'tokens' THEN p_tokens
        WHEN 'generations' THEN 1 ELSE 0 END;
    END LOOP;
    c.held := v_held;
    c.spent := v_spent;
    v_counters[n] := c;
  END LOOP;
  RETURN v_counters;
END
$$;
