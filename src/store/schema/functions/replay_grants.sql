-- Computes the grants of an account again from its ledger, and compares them. Returns one row per difference. What a charge took from a
-- grant an hour after its expiry is a difference too: no call runs for so long.
CREATE OR REPLACE FUNCTION replay_grants(p_lane smallint, p_account_id text) RETURNS TABLE (rule text, detail text)
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_grants grants[];
  v_balance bigint := 0;
  v_seq bigint := 0;
  v_spent bigint;
  v_part bigint;
  v_last constant bigint := (SELECT a.last_seq FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id);
  r record;
BEGIN
  FOR r IN
    SELECT l.seq, l.kind::text AS kind, l.amount_micros, l.created_at FROM ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.kind <> 'generation'
    -- An hour after each expiry.
    UNION ALL SELECT seq_at(p_lane, p_account_id, g.expires_at + interval '1 hour', v_last) - 1, 'late', 0,
        g.expires_at + interval '1 hour' FROM grants g
      WHERE g.lane = p_lane AND g.account_id = p_account_id AND isfinite(g.expires_at)
    UNION ALL SELECT v_last, 'end', 0, 'infinity'
    ORDER BY 1, 2 DESC
  LOOP
    -- The charges since the row before.
    v_spent := (SELECT coalesce(-sum(l.amount_micros), 0) FROM ledger l
      WHERE l.lane = p_lane AND l.account_id = p_account_id AND l.kind = 'generation' AND l.seq > v_seq AND l.seq <= r.seq);
    v_balance := v_balance - v_spent + r.amount_micros;
    FOR i IN 1..coalesce(cardinality(v_grants), 0) LOOP
      v_part := least(v_grants[i].rest_micros, v_spent);
      v_grants[i].rest_micros := v_grants[i].rest_micros - v_part;
      v_spent := v_spent - v_part;
      IF v_part > 0 AND (SELECT l.created_at FROM ledger l WHERE l.lane = p_lane AND l.account_id = p_account_id
          AND l.seq = v_seq + 1) > v_grants[i].expires_at + interval '1 hour' THEN
        RETURN QUERY VALUES ('expired_grant_not_spent', format('charges after row %s took %s from the credit of row %s, which had expired',
          v_seq, v_part, v_grants[i].seq));
      END IF;
    END LOOP;
    v_seq := r.seq;
    IF r.kind = 'expiry' THEN
      v_spent := -r.amount_micros;
      FOR i IN 1..coalesce(cardinality(v_grants), 0) LOOP
        v_part := least(v_grants[i].rest_micros, v_spent);
        v_grants[i].rest_micros := v_grants[i].rest_micros - v_part;
        v_spent := v_spent - v_part;
        IF v_part > 0 AND v_grants[i].expires_at > r.created_at THEN
          RETURN QUERY VALUES ('grant_expires_in_time', format('row %s is the expiry of the credit of row %s, which had not expired', r.seq,
            v_grants[i].seq));
        END IF;
      END LOOP;
      IF v_spent > 0 THEN
        RETURN QUERY VALUES ('grant_expires_in_time', format('row %s takes %s more than what had expired', r.seq, v_spent));
      END IF;
    ELSE
      -- What exceeds the balance is taken from the grants that expire last.
      v_spent := greatest(0, (SELECT coalesce(sum(g.rest_micros), 0) FROM unnest(v_grants) g) - v_balance);
      FOR i IN REVERSE coalesce(cardinality(v_grants), 0)..1 LOOP
        v_part := least(v_grants[i].rest_micros, v_spent);
        v_grants[i].rest_micros := v_grants[i].rest_micros - v_part;
        v_spent := v_spent - v_part;
      END LOOP;
      IF r.kind = 'credit' THEN
        v_grants := ARRAY(SELECT g FROM (
          SELECT (unnest(v_grants)).* UNION ALL
          SELECT n.lane, n.account_id, n.expires_at, n.seq, n.entry_id, n.amount_micros, n.amount_micros, n.is_promotional FROM grants n
            WHERE n.lane = p_lane AND n.account_id = p_account_id AND n.seq = r.seq
        ) g ORDER BY g.expires_at, g.seq);
      END IF;
    END IF;
  END LOOP;
  RETURN QUERY SELECT 'grants_match_ledger', format('%s is left of the credit of row %s, the ledger leaves %s', coalesce(i.rest_micros, 0),
      g.seq, coalesce(e.rest_micros::text, 'nothing: there is no such row'))
    FROM grants g LEFT JOIN grant_rests(p_lane, p_account_id) i ON i.seq = g.seq LEFT JOIN unnest(v_grants) e ON e.seq = g.seq
    WHERE g.lane = p_lane AND g.account_id = p_account_id AND coalesce(i.rest_micros, 0) IS DISTINCT FROM e.rest_micros;
END
$$;
