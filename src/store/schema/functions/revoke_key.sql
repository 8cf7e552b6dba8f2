-- Revokes a key permanently. Each key may revoke itself. With the scope "keys", it may also revoke the keys of its account whose scopes
-- are among its own. A repetition keeps the time of the first revocation.
CREATE OR REPLACE FUNCTION revoke_key(p_caller caller, p_lane smallint, p_id text) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_own constant keys := prove(p_caller, p_lane);
  c_keys constant smallint := 4;
  v_key keys;
BEGIN
  IF p_id <> v_own.id AND v_own.scopes & c_keys = 0 THEN
    PERFORM refuse('insufficient_scope', 'Without the scope "keys", an API key can revoke only itself.', '{"scope":"keys"}');
  END IF;
  v_key := key_in_reach(p_caller, p_lane, p_id);
  IF v_key.scopes & ~v_own.scopes <> 0 THEN
    PERFORM refuse('not_found', 'There is no such key.');
  END IF;
  IF v_key.revoked_at IS NULL THEN
    UPDATE keys SET revoked_at = clock_timestamp() WHERE lane = p_lane AND id = p_id;
    PERFORM write_key_event(v_key, 'key.revoked', jsonb_build_object('by', actor_kind(p_caller)));
    PERFORM log_change(p_caller, p_lane, p_id, v_key.account_id);
  END IF;
  RETURN QUERY SELECT * FROM keys_by_id(p_lane, ARRAY[p_id]);
END
$$;
