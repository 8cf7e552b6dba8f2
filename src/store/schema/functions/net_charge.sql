-- What a generation costs its account after all corrections.
CREATE OR REPLACE FUNCTION net_charge(p_entry ledger) RETURNS bigint
  LANGUAGE plpgsql STABLE
AS $$
BEGIN
  RETURN -p_entry.amount_micros - coalesce((SELECT sum(x.amount_micros) FROM entry_adjustments x
    WHERE x.lane = p_entry.lane AND x.account_id = p_entry.account_id AND x.entry_id = p_entry.id), 0);
END
$$;
