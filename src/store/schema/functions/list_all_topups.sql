-- The top-ups of all accounts before the given one, newest first: all, or those whose payment differs from them.
CREATE OR REPLACE FUNCTION list_all_topups(p_only_problems boolean, p_before text, p_limit integer) RETURNS SETOF topups
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  RETURN QUERY SELECT t.* FROM topups t
    WHERE (t.problem <> '' OR NOT p_only_problems) AND (p_before = '' OR t.id COLLATE "C" < p_before)
    ORDER BY t.id COLLATE "C" DESC LIMIT p_limit;
END
$$;
