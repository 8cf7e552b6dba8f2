-- The balance, the held amount and the unspent grants of an account, from one snapshot. Grants are in the order in which charges take
-- them; one row without a grant if there are none.
CREATE OR REPLACE FUNCTION account_grants(p_lane smallint, p_account_id text)
  RETURNS TABLE (
    balance_micros bigint, held_micros bigint,
    entry_id text, amount_micros bigint, rest_micros bigint, expires_at timestamptz, is_promotional boolean)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT a.balance_micros, a.held_micros,
      g.entry_id, g.amount_micros, g.rest_micros, nullif(g.expires_at, 'infinity'), g.is_promotional
    FROM accounts a LEFT JOIN grant_rests(p_lane, p_account_id) g ON g.rest_micros > 0
    WHERE a.lane = p_lane AND a.id = p_account_id
    ORDER BY g.expires_at, g.seq;
END
$$;
