-- Locks a key, if the proven caller may know of it: a key of the caller's account, for an operator any key. A member needs a role that
-- covers the scopes of the key.
CREATE OR REPLACE FUNCTION key_in_reach(p_caller caller, p_lane smallint, p_id text) RETURNS keys
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key keys;
BEGIN
  SELECT * INTO v_key FROM keys k WHERE k.lane = p_lane AND k.id = p_id
    AND (actor_kind(p_caller) = 'operator' OR k.account_id = p_caller.account_id) FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    PERFORM refuse('not_found', 'There is no such key.');
  ELSIF p_caller.kind = 'member' AND v_key.scopes & ~p_caller.covered_scopes <> 0 THEN
    PERFORM refuse('insufficient_role', format('The key has the scope "%s", which your role does not cover. Ask an owner.',
      names_of_scopes(v_key.scopes & ~p_caller.covered_scopes)));
  END IF;
  RETURN v_key;
END
$$;
