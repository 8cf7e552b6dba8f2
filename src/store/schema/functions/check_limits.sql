-- Checks a hold against all limits that apply to it: spent + held + needed <= amount. p_counters are those of the call and p_places
-- their places; p_changed are those that earlier holds of the batch have changed, at p_changed_places. p_is_short: the balance is too
-- low; then the details also have the remaining amounts of the limits. Reads no table.
CREATE OR REPLACE FUNCTION check_limits(
  p_places tid[], p_counters limit_counter[], p_changed_places tid[], p_changed limit_counter[], p_model text, p_user text,
  p_amount bigint, p_tokens bigint, p_is_short boolean, p_at timestamptz
) RETURNS limit_check
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_places tid[];
  v_counters limit_counter[];
  v_held_counters held_counter[];
  v_is_refused boolean := false;
  v_minutes text;
  v_details text;
  -- Of the current counter.
  v_held bigint[];
  v_needs bigint[];
  v_needed bigint;
  v_applies boolean;
  c limit_counter;
BEGIN
  FOR n IN 1..cardinality(p_counters) LOOP
    c := p_counters[n];
    IF p_places[n] = ANY (p_changed_places) THEN
      c := p_changed[array_position(p_changed_places, p_places[n])];
    END IF;
    IF p_at >= ANY (c.window_ends) THEN
      c := restart_windows(c, p_at);
    END IF;
    v_held := c.held;
    v_needs := NULL;
    v_applies := false;
    FOR i IN 1..cardinality(v_held) LOOP
      -- An alert only counts charges.
      IF c.metrics[i] = 'cost_alert' OR c.models[i] NOT IN ('', p_model) OR (c.per_users[i] AND c.user_id = '' AND p_user <> '') THEN
        v_needs := array_append(v_needs, NULL::bigint);
        CONTINUE;
      END IF;
      v_applies := true;
      v_needed := CASE c.metrics[i] WHEN 'cost' THEN p_amount WHEN 'tokens' THEN p_tokens ELSE 1 END;
      v_needs := array_append(v_needs, v_needed);
      v_held[i] := v_held[i] + v_needed;
      IF c.spent[i] + v_held[i] > c.amounts[i] THEN
        v_is_refused := true;
      END IF;
      IF c.periods[i] = 'minute' THEN
        -- json_build_object takes several times as long.
        v_minutes := concat(v_minutes || ',', '{"metric":"', c.metrics[i], '","amount":"', c.amounts[i], '","remaining":"',
          greatest(0, c.amounts[i] - c.spent[i] - v_held[i]), '","seconds_left":', 60 - floor(extract(second FROM p_at)), '}');
      END IF;
    END LOOP;
    IF v_applies THEN
      c.held := v_held;
      v_places := array_append(v_places, p_places[n]);
      v_counters := array_append(v_counters, c);
      v_held_counters := array_append(v_held_counters, ROW(c.subject_id, c.plan, c.user_id, c.limit_ids, v_needs)::held_counter);
    END IF;
  END LOOP;
  IF v_is_refused OR p_is_short THEN
    v_details := explain_limits(v_counters, v_held_counters, p_at);
  ELSIF v_minutes IS NOT NULL THEN
    v_details := concat('{"minutes":[', v_minutes, ']}');
  END IF;
  RETURN ROW(v_is_refused, v_places, v_counters, v_held_counters, v_details)::limit_check;
END
$$;
