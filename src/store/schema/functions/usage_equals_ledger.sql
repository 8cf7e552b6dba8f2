-- Whether the usage of an account is that of its entries, archived ones included. Reads all of both.
CREATE OR REPLACE FUNCTION usage_equals_ledger(p_lane smallint, p_account_id text) RETURNS boolean
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_head archived_ledger;
BEGIN
  SELECT h.* INTO v_head FROM archived_heads(p_lane, p_account_id, p_account_id) h;
  RETURN usage_total(p_lane, p_account_id, 0) = coalesce(v_head.usage_fingerprint, 0) + (
    SELECT coalesce(sum(e.fingerprint), 0)
    FROM usage_of_entries(p_lane, p_account_id, coalesce(v_head.seq, 0), (SELECT a.last_seq FROM accounts a
      WHERE a.lane = p_lane AND a.id = p_account_id)) e
    WHERE e.account_id = p_account_id
  );
END
$$;
