-- The number of the first event of an account at p_time or later, found by bisection: numbers have no gaps, and times increase with them.
CREATE OR REPLACE FUNCTION event_seq_at(p_lane smallint, p_account_id text, p_time timestamptz) RETURNS bigint
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_low bigint := (SELECT min(e.seq) FROM events e WHERE e.lane = p_lane AND e.account_id = p_account_id);
  v_high bigint := (SELECT i.seq + 1 FROM event_ends i WHERE i.lane = p_lane AND i.account_id = p_account_id);
  v_middle bigint;
BEGIN
  WHILE v_low < v_high LOOP
    v_middle := (v_low + v_high) / 2;
    IF (SELECT e.created_at FROM events e WHERE e.lane = p_lane AND e.account_id = p_account_id AND e.seq = v_middle) < p_time THEN
      v_low := v_middle + 1;
    ELSE
      v_high := v_middle;
    END IF;
  END LOOP;
  RETURN v_high;
END
$$;
