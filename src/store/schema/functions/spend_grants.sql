-- Takes from the grants of accounts what entries have taken from their balances: see spend_grants_in_turn. The grant from which charges take
-- first mostly covers them, which takes one statement for all accounts. p_accounts are the accounts that the batch has changed. The caller
-- holds the locks of the lanes and has written the balances.
CREATE OR REPLACE FUNCTION spend_grants(p_changes grant_change[], p_accounts account_change[]) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_covered text[];
BEGIN
  WITH covered AS (
    UPDATE grants g SET rest_micros = g.rest_micros - n.spent
    FROM (
      SELECT t.balance_micros - p_accounts[t.n].balance_micros AS spent, (
          SELECT o.ctid FROM grants o WHERE o.lane = t.lane AND o.account_id = t.account_id AND o.expires_at >= t.expire_at
            AND o.rest_micros > 0 ORDER BY o.expires_at, o.seq LIMIT 1) AS place
      FROM unnest(p_changes) t WHERE t.kind = 'generation'
    ) n
    WHERE g.ctid = n.place AND g.rest_micros > n.spent
    RETURNING g.account_id
  )
  SELECT array_agg(c.account_id) INTO v_covered FROM covered c;
  IF (cardinality(v_covered) = cardinality(p_changes)) IS NOT TRUE THEN
    PERFORM spend_grants_in_turn(t.lane, t.account_id, t.balance_micros, t.kind) FROM unnest(p_changes) t
      WHERE (t.account_id = ANY (v_covered)) IS NOT TRUE;
  END IF;
END
$$;
