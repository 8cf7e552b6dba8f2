-- Stores the changed fields of a key: those in p_changes, where null means that the field has no value. The caller holds the lock of
-- the account.
CREATE OR REPLACE FUNCTION write_key(p_key keys, p_changes jsonb, p_actor text)
  RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_scopes constant smallint := p_changes ->> 'scopes';
  v_new constant keys := jsonb_populate_record(p_key, p_changes);
BEGIN
  IF p_changes ? 'rate_limit_rpm' AND p_actor <> 'operator' THEN
    PERFORM check_rpm(p_key, v_new.rate_limit_rpm, require_plan(p_key.plan));
  END IF;
  IF v_scopes & ~p_key.scopes <> 0 THEN
    PERFORM refuse('invalid_argument', format('must be among the scopes that the key has: %s', names_of_scopes(p_key.scopes)),
      '{"field":"scopes"}');
  ELSIF p_changes ? 'expires_at' AND v_new.expires_at <= clock_timestamp() THEN
    PERFORM refuse('invalid_argument', 'must be in the future', '{"field":"expires_at"}');
  END IF;
  UPDATE keys SET name = v_new.name, scopes = v_new.scopes,
      scopes_reduced_at = CASE WHEN v_new.scopes <> p_key.scopes THEN clock_timestamp() ELSE scopes_reduced_at END, expires_at = v_new.expires_at, rate_limit_rpm = v_new.rate_limit_rpm,
      models = v_new.models, allowed_cidrs = v_new.allowed_cidrs,
      warned_days = CASE WHEN p_changes ? 'expires_at' THEN days_warned(clock_timestamp(), v_new.expires_at)
                         ELSE warned_days END,
      may_exceed_plan = (may_exceed_plan OR p_changes ? 'rate_limit_rpm' AND p_actor = 'operator') AND v_new.rate_limit_rpm IS NOT NULL
    WHERE lane = p_key.lane AND fingerprint = p_key.fingerprint;
  IF p_changes ? 'limits' THEN
    PERFORM set_limits(p_key.lane, p_key.account_id, p_key.id, coalesce(p_changes ->> 'limits', '[]'), true, p_actor);
  END IF;
  PERFORM write_key_event(v_new, 'key.updated',
    jsonb_build_object('fields', (SELECT jsonb_agg(f ORDER BY f) FROM jsonb_object_keys(p_changes) f)));
END
$$;
