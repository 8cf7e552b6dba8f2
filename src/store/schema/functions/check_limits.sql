-- Checks a hold against all limits that apply to it: spent + held + needed <= amount. p_changed are counters that earlier holds of the
-- batch have changed, and p_places their places. Of several limits that refuse, the one with the longest wait is reported. p_is_short:
-- the balance is too low. Reads no table.
CREATE OR REPLACE FUNCTION check_limits(
  p_counters limit_counter[], p_changed limit_counter[], p_places tid[], p_model text, p_user_id text, p_amount bigint,
  p_tokens bigint, p_is_short boolean, p_at timestamptz
) RETURNS limit_check
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_counters limit_counter[];
  v_named held_counter[];
  v_refusal json;
  v_longest interval;
  v_wait interval;
  -- What is left of the limits of each metric.
  v_cost_room bigint;
  v_token_room bigint;
  v_minutes text;
  -- Of the current counter.
  v_held bigint[];
  v_needs bigint[];
  v_applies boolean;
  -- Of the current limit.
  v_needed bigint;
  v_left bigint;
  v_end timestamptz;
  c limit_counter;
BEGIN
  FOREACH c IN ARRAY p_counters LOOP
    IF c.place = ANY (p_places) THEN
      c := p_changed[array_position(p_places, c.place)];
    END IF;
    v_held := c.held;
    v_needs := NULL;
    v_applies := false;
    FOR i IN 1..cardinality(v_held) LOOP
      IF c.models[i] NOT IN ('', p_model) OR (c.per_users[i] AND c.user_id = '' AND p_user_id <> '') THEN
        v_needs := array_append(v_needs, 0::bigint);
        CONTINUE;
      END IF;
      v_applies := true;
      v_left := c.amounts[i] - v_held[i] - CASE WHEN c.window_ends[i] > p_at THEN c.spent[i] ELSE 0 END;
      IF c.metrics[i] = 'cost' THEN
        v_needed := p_amount;
        v_cost_room := least(v_cost_room, v_left);
      ELSIF c.metrics[i] = 'tokens' THEN
        v_needed := p_tokens;
        v_token_room := least(v_token_room, v_left);
      ELSE
        v_needed := 1;
      END IF;
      IF v_needed > v_left THEN
        v_end := window_end(c.periods[i], p_at);
        v_wait := CASE WHEN v_needed > c.amounts[i] THEN interval '1000 years'
          -- Only running calls stand in the way.
          WHEN v_needed <= v_left + v_held[i] THEN interval '0'
          WHEN v_end = 'infinity' THEN interval '1000 years'
          ELSE v_end - p_at END;
        IF v_longest IS NULL OR v_wait > v_longest THEN
          v_longest := v_wait;
          v_refusal := json_build_object('id', c.limit_ids[i], 'owner_id', CASE c.plan WHEN '' THEN c.subject_id ELSE c.plan END,
            'metric', c.metrics[i], 'window', c.periods[i], 'amount', c.amounts[i]::text, 'model', c.models[i],
            'per', CASE WHEN c.per_users[i] THEN 'user' ELSE '' END,
            'spent', (c.amounts[i] - v_held[i] - v_left)::text, 'held', v_held[i]::text, 'needed', v_needed::text,
            'resets_at', CASE WHEN v_end < 'infinity' THEN floor(extract(epoch FROM v_end)) END,
            'seconds_left', CASE WHEN v_end < 'infinity' THEN ceil(extract(epoch FROM v_end - p_at)) END);
        END IF;
      END IF;
      IF c.periods[i] = 'minute' THEN
        -- json_build_object takes several times as long.
        v_minutes := concat(v_minutes || ',', '{"metric":"', c.metrics[i], '","amount":"', c.amounts[i], '","remaining":"',
          greatest(0, v_left - v_needed), '","seconds_left":', 60 - floor(extract(second FROM p_at)), '}');
      END IF;
      v_held[i] := v_held[i] + v_needed;
      v_needs := array_append(v_needs, v_needed);
    END LOOP;
    IF v_applies THEN
      c.held := v_held;
      v_counters := array_append(v_counters, c);
      v_named := array_append(v_named, ROW(c.subject_id, c.plan, c.user_id, c.limit_ids, v_needs)::held_counter);
    END IF;
  END LOOP;
  RETURN ROW(v_refusal IS NOT NULL, v_counters, v_named, CASE
    WHEN v_refusal IS NOT NULL OR (p_is_short AND v_counters IS NOT NULL) THEN
      json_build_object('refusal', v_refusal, 'cost_room', v_cost_room::text, 'token_room', v_token_room::text,
        'minutes', ('[' || v_minutes || ']')::json)::text
    WHEN v_minutes IS NOT NULL THEN concat('{"minutes":[', v_minutes, ']}') END)::limit_check;
END
$$;
