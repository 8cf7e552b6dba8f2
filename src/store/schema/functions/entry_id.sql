-- The id of a ledger row that no server asked for.
CREATE OR REPLACE FUNCTION entry_id(p_lane smallint, p_at timestamptz) RETURNS text
  LANGUAGE plpgsql
AS $$
BEGIN
  RETURN 'led' || substr(event_id(p_lane, p_at), 4);
END
$$;
