-- The calling key; refuses if admission would refuse it now, except by its rate. The reasons are those of the gate, in its order. The
-- lane is locked, which everything that changes a key or suspends an account locks too.
CREATE OR REPLACE FUNCTION prove_key(p_caller caller, p_lane smallint) RETURNS keys
  LANGUAGE plpgsql
AS $$
DECLARE
  v_key keys;
  v_row record;
BEGIN
  SELECT k AS key, k.expires_at, array_to_string(k.allowed_cidrs, ',') AS cidrs,
         a.suspended_at IS NOT NULL AND NOT p_caller.while_suspended AS is_suspended
    INTO v_row FROM keys k JOIN accounts a ON a.lane = k.lane AND a.id = k.account_id
    WHERE k.lane = p_lane AND k.id = p_caller.id AND k.account_id = p_caller.account_id;
  v_key := v_row.key;
  IF v_key.fingerprint IS DISTINCT FROM p_caller.fingerprint THEN
    SELECT least(v_row.expires_at, s.expires_at) INTO v_row.expires_at FROM previous_secrets s
      WHERE s.lane = p_lane AND s.fingerprint = p_caller.fingerprint AND s.key_id = v_key.id;
  END IF;
  IF NOT FOUND THEN
    PERFORM refuse('invalid_api_key');
  ELSIF v_key.revoked_at IS NOT NULL THEN
    PERFORM refuse('revoked_api_key');
  ELSIF v_row.expires_at <= clock_timestamp() THEN
    PERFORM refuse('expired_api_key');
  ELSIF v_row.is_suspended THEN
    PERFORM refuse('account_suspended');
  ELSIF v_row.cidrs IS DISTINCT FROM p_caller.cidrs THEN
    PERFORM refuse('address_not_allowed',
      'The addresses from which the API key can be used were changed during the call. Repeat the call.');
  ELSIF p_caller.scope & ~v_key.scopes <> 0 THEN
    PERFORM refuse('insufficient_scope', format('The API key lacks the scope "%s".', names_of_scopes(p_caller.scope & ~v_key.scopes)),
      jsonb_build_object('scope', names_of_scopes(p_caller.scope & ~v_key.scopes)));
  END IF;
  RETURN v_key;
END
$$;
