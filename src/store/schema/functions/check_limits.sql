-- Checks a hold against all limits that apply to it: spent + held + needed <= amount. Changes nothing. Of several limits that
-- refuse, the one with the longest wait is reported.
CREATE OR REPLACE FUNCTION check_limits(
  p_hold hold_item, p_key_ids text[], p_with_plans boolean, p_at timestamptz
) RETURNS limit_check
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_counters held_counter[];
  v_places tid[];
  v_ends timestamptz[];
  v_refusal json;
  v_longest interval;
  v_wait interval;
  -- What is left of the limits of each metric.
  v_cost_room bigint;
  v_token_room bigint;
  v_minutes json[];
  r record;
BEGIN
  FOR r IN
    SELECT l.*, u.user_id, w.window_end, c.place, coalesce(c.held, 0) AS held,
           CASE WHEN c.window_end > p_at THEN c.spent ELSE 0 END AS spent,
           CASE l.metric WHEN 'cost' THEN p_hold.amount WHEN 'tokens' THEN p_hold.tokens ELSE 1 END AS needed
    FROM limits_of_keys(p_hold.lane, p_hold.account_id, p_key_ids, p_with_plans, p_at) l
    CROSS JOIN LATERAL (SELECT CASE WHEN l.per_user AND p_hold.user_id <> ''
      THEN counter_user(p_hold.lane, p_hold.account_id, l.id, l.subject_id, p_hold.user_id) ELSE '' END AS user_id) u
    CROSS JOIN LATERAL (SELECT window_end(l.period, p_at) AS window_end) w
    LEFT JOIN LATERAL (SELECT i.ctid AS place, i.window_end, i.spent, i.held FROM limit_counters i
      WHERE i.lane = p_hold.lane AND i.account_id = p_hold.account_id AND i.limit_id = l.id
        AND i.subject_id = l.subject_id AND i.user_id = u.user_id LIMIT 1) c ON true
    WHERE l.model = '' OR l.model = p_hold.model
  LOOP
    IF r.metric = 'cost' THEN
      v_cost_room := least(v_cost_room, r.amount - r.spent - r.held);
    ELSIF r.metric = 'tokens' THEN
      v_token_room := least(v_token_room, r.amount - r.spent - r.held);
    END IF;
    IF r.spent + r.held + r.needed > r.amount THEN
      v_wait := CASE WHEN r.needed > r.amount THEN interval '1000 years'
        -- Only running calls stand in the way.
        WHEN r.spent + r.needed <= r.amount THEN interval '0'
        WHEN r.window_end = 'infinity' THEN interval '1000 years'
        ELSE r.window_end - p_at END;
      IF v_longest IS NULL OR v_wait > v_longest THEN
        v_longest := v_wait;
        v_refusal := json_build_object('id', r.id, 'owner_id', r.owner_id, 'metric', r.metric, 'window', r.period,
          'amount', r.amount::text, 'model', r.model, 'per', CASE WHEN r.per_user THEN 'user' ELSE '' END,
          'spent', r.spent::text, 'held', r.held::text, 'needed', r.needed::text,
          'resets_at', CASE WHEN r.window_end < 'infinity' THEN floor(extract(epoch FROM r.window_end)) END,
          'seconds_left', CASE WHEN r.window_end < 'infinity' THEN ceil(extract(epoch FROM r.window_end - p_at)) END);
      END IF;
    END IF;
    IF r.period = 'minute' THEN
      v_minutes := array_append(v_minutes, json_build_object('metric', r.metric, 'amount', r.amount::text,
        'remaining', greatest(0, r.amount - r.spent - r.held - r.needed)::text,
        'seconds_left', ceil(extract(epoch FROM r.window_end - p_at))));
    END IF;
    v_counters := array_append(v_counters, ROW(p_hold.lane, p_hold.account_id, r.id, r.subject_id, r.user_id,
      r.needed)::held_counter);
    v_places := array_append(v_places, r.place);
    v_ends := array_append(v_ends, r.window_end);
  END LOOP;
  RETURN ROW(v_refusal IS NOT NULL, v_counters, v_places, v_ends, CASE
    WHEN v_refusal IS NOT NULL OR v_cost_room IS NOT NULL OR v_token_room IS NOT NULL OR v_minutes IS NOT NULL THEN
      json_build_object('refusal', v_refusal, 'cost_room', v_cost_room::text, 'token_room', v_token_room::text,
        'minutes', v_minutes)::text END)::limit_check;
END
$$;
