-- Changes a key. A calling key can give no value that exceeds its own, so that it can only tighten itself. A value that it clears (null)
-- becomes its own; limits that are cleared are removed, because those of the calling key apply anyway.
CREATE OR REPLACE FUNCTION update_key(p_caller caller, p_lane smallint, p_id text, p_changes text) RETURNS SETOF key_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_own constant keys := prove(p_caller, p_lane);
  v_key constant keys := key_to_change(p_caller, p_lane, p_id);
  v_given constant jsonb := p_changes;
  v_values constant keys := jsonb_populate_record(NULL::keys, v_given);
  v_changes jsonb := v_given;
BEGIN
  IF v_own.id IS NOT NULL THEN
    PERFORM check_key_bounds(v_own,
      effective_rpm(v_own.rate_limit_rpm, v_own.may_exceed_plan AND p_id = v_own.id, (require_plan(v_own.plan)).rpm),
      v_values.rate_limit_rpm, v_values.expires_at, v_values.models, v_values.allowed_cidrs);
    PERFORM check_limit_bounds(v_own, (v_given -> 'limits')::json);
    IF p_id = v_own.id AND v_given ? 'limits' THEN
      PERFORM check_limits_kept(v_own, (v_given -> 'limits')::json);
    END IF;
    -- The scopes are checked against those of the key, but the caller may have lost some since it created the key.
    IF (v_given ->> 'scopes')::smallint & ~v_own.scopes <> 0 THEN
      PERFORM refuse('invalid_argument',
        format('must be among the scopes of the calling key: %s', names_of_scopes(v_own.scopes)), '{"field":"scopes"}');
    END IF;
    SELECT v_given || coalesce(jsonb_object_agg(c.key, to_jsonb(v_own) -> c.key), '{}') INTO v_changes
      FROM jsonb_each(v_given) c WHERE c.value = 'null';
  END IF;
  PERFORM write_key(v_key, v_changes, actor_kind(p_caller));
  PERFORM log_change(p_caller, p_lane, p_id, v_key.account_id);
  RETURN QUERY SELECT * FROM keys_by_id(p_lane, ARRAY[p_id]);
END
$$;
