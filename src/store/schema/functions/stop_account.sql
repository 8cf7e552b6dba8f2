-- Suspends an account, revokes its keys, deletes its invitations and stops its automatic top-ups, so that nothing new begins in it.
-- Returns whether anything changed. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION stop_account(p_lane smallint, p_id text) RETURNS boolean
  LANGUAGE plpgsql
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_key_ids text[];
  v_is_new boolean;
BEGIN
  UPDATE accounts SET suspended_at = v_now WHERE lane = p_lane AND id = p_id AND suspended_at IS NULL;
  v_is_new := FOUND;
  WITH revoked AS (
    UPDATE keys SET revoked_at = v_now WHERE lane = p_lane AND account_id = p_id AND revoked_at IS NULL RETURNING id
  )
  SELECT array_agg(r.id ORDER BY r.id) INTO v_key_ids FROM revoked r;
  PERFORM write_key_event(k, 'key.revoked', '{"by":"operator"}')
    FROM unnest(v_key_ids) r (id) JOIN keys k ON k.lane = p_lane AND k.id = r.id;
  -- The caller reads the members next, so no invitation may be accepted after that.
  DELETE FROM invitations WHERE lane = p_lane AND account_id = p_id;
  UPDATE auto_topups SET is_enabled = false WHERE lane = p_lane AND account_id = p_id AND is_enabled;
  IF FOUND THEN
    PERFORM write_auto_topup_event(p_lane, p_id, 'topup.auto_disabled', '', 'operator');
    PERFORM arm_auto_topup(p_lane, p_id, false);
    -- A payment that is not sent yet is not made any more.
    UPDATE topups SET next_poll_at = v_now
      WHERE lane = p_lane AND account_id = p_id AND is_automatic AND state = 'pending' AND next_poll_at IS NOT NULL;
    v_is_new := true;
  END IF;
  RETURN v_is_new OR v_key_ids IS NOT NULL;
END
$$;
