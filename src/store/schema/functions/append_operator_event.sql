-- Appends an event to the chain of its lane.
CREATE OR REPLACE FUNCTION append_operator_event(
  p_caller caller, p_lane smallint, p_target text, p_account_id text, p_outcome text
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_chain operator_chains;
  v_new operator_events;
BEGIN
  SELECT * INTO v_chain FROM operator_chains WHERE lane = p_lane FOR UPDATE;
  v_new := ROW(p_lane, v_chain.last_seq + 1, greatest(clock_timestamp(), v_chain.last_at), p_caller.id,
    p_caller.name, p_caller.method, p_target, p_account_id, p_caller.reason, p_outcome, p_caller.details, p_caller.request_id,
    NULL)::operator_events;
  v_new.hash := operator_event_hash(v_chain.last_hash, v_new);
  INSERT INTO operator_events SELECT v_new.*;
  UPDATE operator_chains SET last_seq = v_new.seq, last_hash = v_new.hash, last_at = v_new.created_at
    WHERE lane = p_lane;
END
$$;
