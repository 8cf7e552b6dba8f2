-- Revokes the key of a member's playground, because the role that permits it ends. The caller holds the lane.
CREATE OR REPLACE FUNCTION revoke_playground_key(p_lane smallint, p_account_id text, p_person_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE keys k SET revoked_at = clock_timestamp()
    WHERE k.lane = p_lane AND k.account_id = p_account_id AND k.playground_of = p_person_id AND k.revoked_at IS NULL;
END
$$;
