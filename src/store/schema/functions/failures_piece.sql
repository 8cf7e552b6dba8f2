-- The id of the row that is p_rows rows before p_end; NULL if there are fewer. Lists with filters read so many rows at once.
CREATE OR REPLACE FUNCTION failures_piece(p_lane smallint, p_account_id text, p_first text, p_end text, p_rows integer) RETURNS text
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  RETURN (SELECT f.id FROM failures f
    WHERE f.lane = p_lane AND f.account_id = p_account_id AND f.id >= p_first AND f.id < p_end
    ORDER BY f.id DESC OFFSET p_rows - 1 LIMIT 1);
END
$$;
