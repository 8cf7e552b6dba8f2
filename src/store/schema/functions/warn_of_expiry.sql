-- Writes the event key.expiring that is due for a key, once.
CREATE OR REPLACE FUNCTION warn_of_expiry(p_lane smallint, p_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  PERFORM require_lane(p_lane);
  PERFORM lock_account(p_lane, k.account_id) FROM keys k WHERE k.lane = p_lane AND k.id = p_id;
  UPDATE keys k SET warned_days = days_warned(v_now, k.expires_at)
    WHERE k.lane = p_lane AND k.id = p_id AND k.revoked_at IS NULL AND k.expires_at > v_now
      AND days_warned(v_now, k.expires_at) IS DISTINCT FROM k.warned_days;
  IF FOUND THEN
    PERFORM write_key_event(k, 'key.expiring',
        jsonb_build_object('expires_at', k.expires_at, 'days', k.warned_days))
      FROM keys k WHERE k.lane = p_lane AND k.id = p_id;
  END IF;
END
$$;
