-- The top-ups of all accounts before the given one, newest first: with a state, or all if it is empty, and only those whose payment
-- differs from them if p_only_problems.
CREATE OR REPLACE FUNCTION list_all_topups(p_state text, p_only_problems boolean, p_before text, p_limit integer)
  RETURNS SETOF topups
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
BEGIN
  RETURN QUERY SELECT t.* FROM topups t
    WHERE (p_state = '' OR t.state = nullif(p_state, '')::topup_state) AND (NOT p_only_problems OR t.problem <> '')
      AND (p_before = '' OR t.id COLLATE "C" < p_before)
    ORDER BY t.id COLLATE "C" DESC LIMIT p_limit;
END
$$;
