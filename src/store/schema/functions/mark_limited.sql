-- Stores that the limits of an account or its keys have changed, and whether they have any, in the columns that each hold reads. The caller holds the lock of the account.
CREATE OR REPLACE FUNCTION mark_limited(p_lane smallint, p_account_id text, p_owner_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_owner_id <> p_account_id THEN
    UPDATE keys k SET is_limited = t.is_limited FROM (
      SELECT i.id, EXISTS (SELECT 1 FROM limits l WHERE l.lane = p_lane AND l.owner_id = ANY (i.ancestors || i.id)) AS is_limited
      FROM keys i
      WHERE i.lane = p_lane AND i.account_id = p_account_id AND (i.id = p_owner_id OR p_owner_id = ANY (i.ancestors))
    ) t WHERE k.lane = p_lane AND k.id = t.id AND k.is_limited <> t.is_limited;
  END IF;
  UPDATE accounts a SET
    limits_version = a.limits_version + 1,
    is_limited = EXISTS (SELECT 1 FROM limits l WHERE l.lane = p_lane AND l.owner_id = p_account_id),
    has_limited_keys = EXISTS (SELECT 1 FROM keys k WHERE k.lane = p_lane AND k.account_id = p_account_id AND k.is_limited)
  WHERE a.lane = p_lane AND a.id = p_account_id;
END
$$;
