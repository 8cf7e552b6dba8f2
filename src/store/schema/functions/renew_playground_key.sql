-- Gives the key of a member's playground a new secret and expiry. Returns its id; NULL if there is none. The caller is proven.
CREATE OR REPLACE FUNCTION renew_playground_key(
  p_caller caller, p_plan plans, p_fingerprint bytea, p_expires_at timestamptz, p_visible_start text, p_visible_end text
) RETURNS text
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key keys;
BEGIN
  SELECT * INTO v_key FROM keys k
    WHERE k.lane = lane_of(p_caller.account_id) AND k.account_id = p_caller.account_id AND k.playground_of = p_caller.id
      AND k.revoked_at IS NULL FOR NO KEY UPDATE;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  PERFORM replace_secret(v_key, p_fingerprint, p_visible_start, p_visible_end, 0);
  UPDATE keys k SET expires_at = p_expires_at, plan = p_plan.name WHERE k.lane = v_key.lane AND k.id = v_key.id;
  IF v_key.expires_at <= clock_timestamp() THEN
    PERFORM check_key_cap(v_key.lane, v_key.account_id, p_plan);
  END IF;
  RETURN v_key.id;
END
$$;
