-- Changes the calling key or a key that it created, directly or through other keys. No value may exceed the calling key's
-- own, so that a key can only be tightened by itself. A value that is cleared (null) becomes the calling key's; limits that are cleared
-- are removed, because those of the calling key apply anyway.
CREATE OR REPLACE FUNCTION update_key(p_lane smallint, p_account_id text, p_caller_id text, p_id text, p_changes text)
  RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_account constant accounts := lock_account(p_lane, p_account_id);
  v_caller constant keys := lock_parent_key(p_lane, v_account.id, p_caller_id);
  v_key constant keys := lock_descendant_key(p_lane, v_caller, p_id);
  v_plan constant plans := require_plan(v_caller.plan);
  v_is_self constant boolean := p_id = p_caller_id;
  v_given constant jsonb := p_changes;
  v_values constant keys := jsonb_populate_record(NULL::keys, v_given);
  v_changes jsonb := v_given;
BEGIN
  PERFORM check_key_bounds(v_caller, effective_rpm(v_caller.rate_limit_rpm, v_caller.may_exceed_plan AND v_is_self, v_plan.rpm),
    v_values.rate_limit_rpm, v_values.expires_at, v_values.models, v_values.allowed_cidrs);
  PERFORM check_limit_bounds(v_caller, (v_given -> 'limits')::json);
  IF v_is_self AND v_given ? 'limits' THEN
    PERFORM check_limits_kept(v_caller, (v_given -> 'limits')::json);
  END IF;
  -- The scopes are checked against those of the key, but the caller may have lost some since it created the key.
  IF (v_given ->> 'scopes')::smallint & ~v_caller.scopes <> 0 THEN
    PERFORM refuse('invalid_argument',
      format('must be among the scopes of the calling key: %s', names_of_scopes(v_caller.scopes)), '{"field":"scopes"}');
  END IF;
  SELECT v_given || coalesce(jsonb_object_agg(c.key, to_jsonb(v_caller) -> c.key), '{}') INTO v_changes
    FROM jsonb_each(v_given) c WHERE c.value = 'null';
  PERFORM write_key(v_key, v_changes, v_key.may_exceed_plan AND v_is_self, 'key');
  RETURN QUERY SELECT * FROM view_keys(p_lane, p_account_id, p_id, '', 1);
END
$$;
