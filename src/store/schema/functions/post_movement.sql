-- Appends a ledger row about a payment, or one that corrects a charge, and returns its id and month. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION post_movement(p_lane smallint, p_account_id text, p_kind entry_kind, p_micros bigint, p_reason text,
  p_adjusted_id text DEFAULT '', OUT id text, OUT month integer)
  LANGUAGE plpgsql
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_utc constant timestamp := v_now AT TIME ZONE 'UTC';
BEGIN
  id := entry_id(p_lane, v_now);
  month := (extract(year FROM v_utc) - 1970) * 12 + extract(month FROM v_utc) - 1;
  PERFORM post_entries(ARRAY[ROW(p_lane, p_account_id, NULL, id, month, p_kind, p_micros, p_reason, '', '', '', 0, 0, 0, 0, 0, 0,
    0, 0, '', '', NULL, 0, 0, 0, '', NULL, p_adjusted_id)::entry_item], NULL);
END
$$;
