-- The remaining amounts of the grants of an account, in the order in which charges take them: rest_micros as it was last written, minus what charges
-- have taken since then. Grants of which nothing was left then are not returned.
CREATE OR REPLACE FUNCTION grant_rests(p_lane smallint, p_account_id text) RETURNS SETOF grants
  LANGUAGE sql STABLE
AS $$
  SELECT g.lane, g.account_id, g.expires_at, g.seq, g.entry_id, g.amount_micros,
    g.rest_micros - least(g.rest_micros, greatest(0, a.grants_spent_micros + g.rest_micros - sum(g.rest_micros) OVER until))::bigint,
    g.is_promotional
  FROM accounts a JOIN grants g ON g.lane = a.lane AND g.account_id = a.id
  -- The grants before have nothing left.
  WHERE a.lane = p_lane AND a.id = p_account_id AND g.expires_at >= coalesce(a.grants_expire_at, '-infinity') AND g.rest_micros > 0
  WINDOW until AS (ORDER BY g.expires_at, g.seq)
  ORDER BY g.expires_at, g.seq
$$;
