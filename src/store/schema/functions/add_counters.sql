-- Adds the counters of a check that have no row.
CREATE OR REPLACE FUNCTION add_counters(p_check limit_check, p_at timestamptz) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO limit_counters (lane, account_id, limit_id, subject_id, user_id, window_end, spent, held, counted_since)
    SELECT t.lane, t.account_id, t.limit_id, t.subject_id, t.user_id, t.window_end, 0, t.amount, p_at
    FROM unnest(p_check.counters, p_check.places, p_check.window_ends)
      AS t (lane, account_id, limit_id, subject_id, user_id, amount, place, window_end)
    WHERE t.place IS NULL;
  PERFORM count_users(t.lane, t.account_id, count(*)::integer)
    FROM unnest(p_check.counters, p_check.places) AS t (lane, account_id, limit_id, subject_id, user_id, amount, place)
    WHERE t.place IS NULL AND t.user_id <> '' GROUP BY t.lane, t.account_id;
END
$$;
