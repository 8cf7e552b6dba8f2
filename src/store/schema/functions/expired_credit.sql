-- What has expired of the grants of an account and is still in its balance.
CREATE OR REPLACE FUNCTION expired_credit(p_lane smallint, p_account_id text, p_at timestamptz) RETURNS bigint
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  -- The grants before have nothing left.
  v_from constant timestamptz := (SELECT a.grants_expire_at FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id);
BEGIN
  RETURN (SELECT coalesce(sum(g.rest_micros), 0) FROM grants g
    WHERE g.lane = p_lane AND g.account_id = p_account_id AND g.expires_at BETWEEN v_from AND p_at AND g.rest_micros > 0);
END
$$;
