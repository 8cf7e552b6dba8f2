-- The number of the first entry of an account at this time or later, at most p_last + 1. Entries are in the order of their
-- times, so the primary key finds it in a few steps, each of which ends at the first partition that has the entry. An
-- entry that was archived counts as older.
CREATE OR REPLACE FUNCTION seq_at(p_lane smallint, p_account_id text, p_time timestamptz, p_last bigint) RETURNS bigint
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_low bigint := 1;
  v_high bigint := p_last + 1;
  v_middle bigint;
BEGIN
  WHILE v_low < v_high LOOP
    v_middle := (v_low + v_high) / 2;
    IF (SELECT l.created_at FROM ledger l
        WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.seq = v_middle LIMIT 1) >= p_time THEN
      v_high := v_middle;
    ELSE
      v_low := v_middle + 1;
    END IF;
  END LOOP;
  RETURN v_low;
END
$$;
