-- Writes an event in the transaction of its cause. The row of the account's last event orders its events. A transaction locks it after
-- rows of keys and before the chain of the operator log.
CREATE OR REPLACE FUNCTION write_event(p_lane smallint, p_account_id text, p_type text, p_data jsonb) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_end event_ends;
BEGIN
  INSERT INTO event_ends AS e (lane, account_id, seq, created_at) VALUES (p_lane, p_account_id, 1, clock_timestamp())
    ON CONFLICT ON CONSTRAINT event_ends_pkey DO UPDATE
      SET seq = e.seq + 1, created_at = greatest(excluded.created_at, e.created_at + interval '1 microsecond')
    RETURNING * INTO v_end;
  INSERT INTO events (lane, account_id, seq, id, type, created_at, data)
    VALUES (p_lane, p_account_id, v_end.seq, event_id(p_lane, v_end.created_at), p_type, v_end.created_at, p_data);
END
$$;
