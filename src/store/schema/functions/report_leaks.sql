-- Revokes the keys of leaked secrets, with all keys that they created, directly or through other keys. Each item of p_leaks has the
-- fingerprint of a secret and the reason for the operator log. A secret that was rotated counts while it works, and its key is returned
-- afterwards too. A report that revokes nothing is not logged, so that repetitions do not fill the log.
CREATE OR REPLACE FUNCTION report_leaks(p_caller caller, p_lane smallint, p_leaks text)
  RETURNS TABLE (fingerprint text, key_id text, account_id text, revoked_keys integer)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_caller caller := p_caller;
  v_leak json;
  v_secret bytea;
  v_works boolean;
  v_revoked text[];
  v_all_revoked text[];
  -- The reasons of leaks that revoked keys, and the leaked keys.
  v_reasons text[];
  v_leaked text[];
  v_row record;
BEGIN
  FOR v_leak IN SELECT json_array_elements(p_leaks::json) LOOP
    fingerprint := v_leak ->> 'fingerprint';
    v_secret := decode(fingerprint, 'hex');
    SELECT k.id, k.account_id, true INTO key_id, account_id, v_works FROM keys k WHERE k.lane = p_lane AND k.fingerprint = v_secret;
    IF NOT FOUND THEN
      SELECT k.id, k.account_id, s.expires_at > clock_timestamp() INTO key_id, account_id, v_works
        FROM previous_secrets s JOIN keys k ON k.lane = s.lane AND k.id = s.key_id
        WHERE s.lane = p_lane AND s.fingerprint = v_secret;
      CONTINUE WHEN NOT FOUND;
    END IF;
    WITH revoked AS (
      UPDATE keys k SET revoked_at = clock_timestamp()
      WHERE k.lane = p_lane AND k.account_id = report_leaks.account_id AND key_id = ANY (k.ancestors || k.id)
        AND k.revoked_at IS NULL AND v_works
      RETURNING k.id
    )
    SELECT array_agg(r.id ORDER BY r.id) INTO v_revoked FROM revoked r;
    revoked_keys := coalesce(cardinality(v_revoked), 0);
    v_all_revoked := v_all_revoked || v_revoked;
    IF revoked_keys > 0 THEN
      v_reasons := array_append(v_reasons, v_leak ->> 'reason');
      v_leaked := array_append(v_leaked, key_id);
    END IF;
    RETURN NEXT;
  END LOOP;
  -- After all keys, because other transactions lock a key before the events of its account and the operator log.
  PERFORM write_key_event(k, 'key.revoked', '{"by":"leak_report"}')
    FROM unnest(v_all_revoked) r (id) JOIN keys k ON k.lane = p_lane AND k.id = r.id;
  FOR v_row IN SELECT l.reason, k.id, k.account_id FROM unnest(v_reasons, v_leaked) l (reason, key_id)
    JOIN keys k ON k.lane = p_lane AND k.id = l.key_id
  LOOP
    v_caller.reason := v_row.reason;
    PERFORM log_change(v_caller, p_lane, v_row.id, v_row.account_id);
  END LOOP;
END
$$;
