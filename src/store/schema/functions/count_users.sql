-- Adds to the number of counters of end users that an account has.
CREATE OR REPLACE FUNCTION count_users(p_lane smallint, p_account_id text, p_added integer) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  INSERT INTO limit_users AS u (lane, account_id, counters) VALUES (p_lane, p_account_id, p_added)
    ON CONFLICT ON CONSTRAINT limit_users_pkey DO UPDATE SET counters = u.counters + excluded.counters;
END
$$;
