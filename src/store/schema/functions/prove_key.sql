-- Refuses a caller whose key admission would refuse now, except by its rate. The reasons are those of the gate, in its order.
CREATE OR REPLACE FUNCTION prove_key(p_caller caller, p_lane smallint) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_key keys;
  v_expires_at timestamptz;
BEGIN
  SELECT * INTO v_key FROM keys k WHERE k.lane = p_lane AND k.id = p_caller.id AND k.account_id = p_caller.account_id FOR NO KEY UPDATE;
  v_expires_at := v_key.expires_at;
  IF v_key.fingerprint IS DISTINCT FROM p_caller.fingerprint THEN
    SELECT least(v_expires_at, s.expires_at) INTO v_expires_at FROM previous_secrets s
      WHERE s.lane = p_lane AND s.fingerprint = p_caller.fingerprint AND s.key_id = v_key.id;
  END IF;
  IF NOT FOUND THEN
    PERFORM refuse('invalid_api_key');
  ELSIF v_key.revoked_at IS NOT NULL THEN
    PERFORM refuse('revoked_api_key');
  ELSIF v_expires_at <= v_now THEN
    PERFORM refuse('expired_api_key');
  ELSIF NOT p_caller.while_suspended AND EXISTS (
      SELECT 1 FROM accounts a WHERE a.lane = p_lane AND a.id = v_key.account_id AND a.suspended_at IS NOT NULL) THEN
    PERFORM refuse('account_suspended');
  ELSIF array_to_string(v_key.allowed_cidrs, ',') IS DISTINCT FROM p_caller.cidrs THEN
    PERFORM refuse('address_not_allowed',
      'The addresses from which the API key can be used were changed during the call. Repeat the call.');
  ELSIF p_caller.scope & ~v_key.scopes <> 0 THEN
    PERFORM refuse('insufficient_scope', format('The API key lacks the scope "%s".', names_of_scopes(p_caller.scope & ~v_key.scopes)),
      jsonb_build_object('scope', names_of_scopes(p_caller.scope & ~v_key.scopes)));
  END IF;
END
$$;
