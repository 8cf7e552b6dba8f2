-- The sum of the open holds of each of these accounts. Accounts without holds are omitted.
CREATE OR REPLACE FUNCTION held_by_accounts(p_lane smallint, p_account_id text[])
  RETURNS TABLE (account_id text, held_micros numeric)
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN QUERY SELECT h.account_id, sum(h.amount_micros) FROM holds h
    WHERE h.lane = p_lane AND h.account_id = ANY (p_account_id) GROUP BY h.account_id;
END
$$;
