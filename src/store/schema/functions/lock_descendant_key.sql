-- The key that another one is about to change: itself, or a key that it created, directly or through other keys.
CREATE OR REPLACE FUNCTION lock_descendant_key(p_lane smallint, p_caller keys, p_id text) RETURNS keys
  LANGUAGE plpgsql
AS $$
DECLARE
  v_ancestors text[];
BEGIN
  SELECT ancestors || id INTO v_ancestors FROM keys WHERE lane = p_lane AND id = p_id AND account_id = p_caller.account_id;
  IF NOT FOUND THEN
    PERFORM refuse('not_found', 'There is no such key.');
  ELSIF p_caller.id <> ALL (v_ancestors) THEN
    PERFORM refuse('not_found', 'The calling key can change itself and the keys that it created, directly or through other keys. This is another key of the account.');
  END IF;
  RETURN lock_active_key(p_lane, p_id);
END
$$;
