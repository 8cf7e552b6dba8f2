-- What has expired of the grants of an account and is still in its balance.
CREATE OR REPLACE FUNCTION expired_credit(p_lane smallint, p_account_id text, p_at timestamptz) RETURNS bigint
  LANGUAGE sql STABLE
AS $$
  SELECT coalesce(sum(r.rest_micros), 0)::bigint FROM grant_rests(p_lane, p_account_id) r WHERE r.expires_at <= p_at
$$;
