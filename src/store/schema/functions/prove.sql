-- Proves that the caller of a change still has the right to make it. Returns the calling key; a row of NULLs for other callers. Each
-- function that writes for a caller calls this before anything else. It locks the lane, then the rows of a person, member or operator.
-- Whatever withdraws a right takes the same locks, so the right stays until the change is committed. The gate of the server refuses
-- earlier, but a request can arrive long after it. The server itself compares break-glass tokens, which no table has.
CREATE OR REPLACE FUNCTION prove(p_caller caller, p_lane smallint DEFAULT no_lane()) RETURNS keys
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key keys;
BEGIN
  IF p_lane <> no_lane() THEN
    PERFORM lock_lane(p_lane);
  END IF;
  CASE p_caller.kind
    WHEN 'key' THEN v_key := prove_key(p_caller, p_lane);
    WHEN 'member' THEN
      PERFORM prove_person(p_caller);
      PERFORM prove_member(p_caller, p_lane);
    WHEN 'person' THEN PERFORM prove_person(p_caller);
    WHEN 'operator', 'operator_session' THEN PERFORM prove_operator(p_caller);
    WHEN 'break_glass', 'server' THEN NULL;
  END CASE;
  RETURN v_key;
END
$$;
