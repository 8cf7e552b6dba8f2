-- Locks the key that a proven caller is about to update or rotate. A key changes itself and the keys that it created, directly or through
-- other keys; a member the keys of the account whose scopes the role covers; an operator any key.
CREATE OR REPLACE FUNCTION key_to_change(p_caller caller, p_lane smallint, p_id text) RETURNS keys
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key constant keys := key_in_reach(p_caller, p_lane, p_id);
BEGIN
  IF p_caller.kind = 'key' AND p_caller.id <> ALL (v_key.ancestors || v_key.id) THEN
    PERFORM refuse('not_found',
      'The calling key can change itself and the keys that it created, directly or through other keys. This is another key of the account.');
  ELSIF v_key.playground_of IS NOT NULL THEN
    PERFORM refuse('invalid_argument', 'must not be the key of a playground, which only its page renews', '{"field":"key_id"}');
  ELSIF v_key.revoked_at IS NOT NULL THEN
    PERFORM refuse('invalid_argument', 'must be an active key, and this one was revoked', '{"field":"key_id"}');
  ELSIF v_key.expires_at <= clock_timestamp() THEN
    PERFORM refuse('invalid_argument', 'must be an active key, and this one has expired', '{"field":"key_id"}');
  END IF;
  RETURN v_key;
END
$$;
