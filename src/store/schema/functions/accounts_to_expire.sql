-- Accounts with free credit that has expired, at most p_limit.
CREATE OR REPLACE FUNCTION accounts_to_expire(p_limit integer) RETURNS TABLE (lane smallint, id text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  RETURN QUERY SELECT a.lane, a.id FROM accounts a JOIN lanes l ON l.lane = a.lane AND l.is_owned
    WHERE a.grants_expire_at <= clock_timestamp() AND a.balance_micros > a.held_micros ORDER BY a.grants_expire_at LIMIT p_limit;
END
$$;
