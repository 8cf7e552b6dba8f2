-- Writes the remaining amounts of the grants of an account. If the grants exceed the balance, a debit other than a charge has taken the difference,
-- which is subtracted from the grants that expire last. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION spend_grants(p_lane smallint, p_account_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_balance constant bigint := (SELECT a.balance_micros FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id);
BEGIN
  UPDATE grants g SET rest_micros = n.rest
    FROM (SELECT r.expires_at, r.seq, r.rest_micros - least(r.rest_micros, greatest(0, r.excess - r.behind)) AS rest
      FROM (SELECT i.*, sum(i.rest_micros) OVER () - v_balance AS excess,
          sum(i.rest_micros) OVER (ORDER BY i.expires_at DESC, i.seq DESC) - i.rest_micros AS behind
        FROM grant_rests(p_lane, p_account_id) i) r) n
    WHERE g.lane = p_lane AND g.account_id = p_account_id AND g.expires_at = n.expires_at AND g.seq = n.seq AND g.rest_micros <> n.rest;
  UPDATE accounts a SET grants_spent_micros = 0, grants_expire_at = (SELECT min(g.expires_at) FROM grants g
      WHERE g.lane = p_lane AND g.account_id = p_account_id AND g.expires_at >= a.grants_expire_at AND g.rest_micros > 0)
    WHERE a.lane = p_lane AND a.id = p_account_id;
END
$$;
