-- Refuses when the account has more active keys on the plan than the plan allows.
CREATE OR REPLACE FUNCTION check_key_cap(p_lane smallint, p_account_id text, p_plan plans) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  -- A volatile function in the condition would prevent an index look-up.
  v_now constant timestamptz := clock_timestamp();
  v_active integer;
BEGIN
  SELECT count(*) INTO v_active FROM keys
    WHERE lane = p_lane AND account_id = p_account_id AND plan = p_plan.name
      AND revoked_at IS NULL AND coalesce(expires_at, 'infinity') > v_now;
  IF v_active > p_plan.max_active_keys THEN
    PERFORM refuse('key_limit_reached',
      format('The plan "%s" allows %s active keys. Revoke an unused key to free a slot.', p_plan.name, p_plan.max_active_keys)
        || CASE WHEN EXISTS (
             SELECT 1 FROM keys WHERE lane = p_lane AND account_id = p_account_id AND plan = p_plan.name AND playground_of IS NOT NULL
               AND revoked_at IS NULL AND expires_at > v_now
           ) THEN ' Keys of the playground count too; they expire within an hour.' ELSE '' END,
      jsonb_build_object('plan', p_plan.name, 'max_active_keys', p_plan.max_active_keys::text));
  END IF;
END
$$;
