-- The top-ups of an account before the given one, newest first, with the filters of list_all_topups. An empty p_before means the first
-- page.
CREATE OR REPLACE FUNCTION list_topups(
  p_lane smallint, p_account_id text, p_state text, p_only_problems boolean, p_before text, p_limit integer
) RETURNS SETOF topups
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT t.* FROM topups t
    WHERE t.lane = p_lane AND t.account_id = p_account_id AND (p_before = '' OR t.id < p_before)
      AND (p_state = '' OR t.state::text = p_state) AND (NOT p_only_problems OR t.problem <> '')
    ORDER BY t.id DESC LIMIT p_limit;
END
$$;
