-- Checks a hold against all limits that apply to it and, if it fits them, holds what it needs of their counters. The caller
-- holds the lock of the lane.
CREATE OR REPLACE FUNCTION hold_limits(
  p_hold hold_item, p_key_ids text[], p_with_plans boolean, p_at timestamptz
) RETURNS limit_check
  LANGUAGE plpgsql
AS $$
DECLARE
  v_check constant limit_check := check_limits(p_hold, p_key_ids, p_with_plans, p_at);
BEGIN
  IF v_check.is_refused OR v_check.counters IS NULL THEN
    RETURN v_check;
  END IF;
  UPDATE limit_counters c SET
    held = c.held + t.amount,
    spent = CASE WHEN c.window_end > p_at THEN c.spent ELSE 0 END,
    counted_since = CASE WHEN c.window_end > p_at THEN c.counted_since ELSE '-infinity' END,
    window_end = CASE WHEN c.window_end > p_at THEN c.window_end ELSE t.window_end END
  FROM unnest(v_check.counters, v_check.places, v_check.window_ends)
    AS t (lane, account_id, limit_id, subject_id, user_id, amount, place, window_end)
  WHERE c.ctid = t.place;
  IF array_position(v_check.places, NULL) IS NOT NULL THEN
    PERFORM add_counters(v_check, p_at);
  END IF;
  RETURN v_check;
END
$$;
