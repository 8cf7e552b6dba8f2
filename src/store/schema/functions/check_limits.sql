-- Checks a hold against all limits that apply to it, p_limits[p_from] to p_limits[p_to]: spent + held + needed <= amount. p_added are the
-- amounts that earlier holds of the batch hold of each slot, NULL for none. Of several limits that refuse, the one with the longest
-- wait is reported. Reads no table.
CREATE OR REPLACE FUNCTION check_limits(p_limits hold_limit[], p_from integer, p_to integer, p_added bigint[]) RETURNS limit_check
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_counters held_counter[];
  v_refusal json;
  v_longest interval;
  v_wait interval;
  -- What is left of the limits of each metric.
  v_cost_room bigint;
  v_token_room bigint;
  v_minutes json[];
  v_held bigint;
  r hold_limit;
BEGIN
  FOR i IN p_from..p_to LOOP
    r := p_limits[i];
    v_held := CASE WHEN r.is_shared THEN r.held + coalesce(p_added[r.slot], 0) ELSE r.held END;
    IF r.metric = 'cost' THEN
      v_cost_room := least(v_cost_room, r.amount - r.spent - v_held);
    ELSIF r.metric = 'tokens' THEN
      v_token_room := least(v_token_room, r.amount - r.spent - v_held);
    END IF;
    IF r.spent + v_held + r.needed > r.amount THEN
      v_wait := CASE WHEN r.needed > r.amount THEN interval '1000 years'
        -- Only running calls stand in the way.
        WHEN r.spent + r.needed <= r.amount THEN interval '0'
        WHEN r.window_end = 'infinity' THEN interval '1000 years'
        ELSE r.window_end - r.at END;
      IF v_longest IS NULL OR v_wait > v_longest THEN
        v_longest := v_wait;
        v_refusal := json_build_object('id', r.id, 'owner_id', r.owner_id, 'metric', r.metric, 'window', r.period,
          'amount', r.amount::text, 'model', r.model, 'per', CASE WHEN r.per_user THEN 'user' ELSE '' END,
          'spent', r.spent::text, 'held', v_held::text, 'needed', r.needed::text,
          'resets_at', CASE WHEN r.window_end < 'infinity' THEN floor(extract(epoch FROM r.window_end)) END,
          'seconds_left', CASE WHEN r.window_end < 'infinity' THEN ceil(extract(epoch FROM r.window_end - r.at)) END);
      END IF;
    END IF;
    IF r.period = 'minute' THEN
      v_minutes := array_append(v_minutes, json_build_object('metric', r.metric, 'amount', r.amount::text,
        'remaining', greatest(0, r.amount - r.spent - v_held - r.needed)::text,
        'seconds_left', ceil(extract(epoch FROM r.window_end - r.at))));
    END IF;
    v_counters := array_append(v_counters, r.counter);
  END LOOP;
  RETURN ROW(v_refusal IS NOT NULL, v_counters, CASE
    WHEN v_refusal IS NOT NULL OR v_cost_room IS NOT NULL OR v_token_room IS NOT NULL OR v_minutes IS NOT NULL THEN
      json_build_object('refusal', v_refusal, 'cost_room', v_cost_room::text, 'token_room', v_token_room::text,
        'minutes', v_minutes)::text END)::limit_check;
END
$$;
