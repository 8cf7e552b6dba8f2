-- The names of accounts, and of keys and operators, whose ids are lists in JSON. Ids that do not exist have none.
CREATE OR REPLACE FUNCTION names_of(p_account_ids text, p_key_ids text) RETURNS TABLE (id text, name text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
  RETURN QUERY
  SELECT a.id, a.name FROM json_array_elements_text(p_account_ids::json) AS i (id) JOIN accounts a ON a.lane = lane_of(i.id) AND a.id = i.id
  UNION ALL
  SELECT k.id, k.name FROM json_array_elements_text(p_key_ids::json) AS i (id) JOIN keys k ON k.lane = lane_of(i.id) AND k.id = i.id
  UNION ALL
  SELECT o.id, o.name FROM json_array_elements_text(p_key_ids::json) AS i (id) JOIN operators o ON o.id = i.id;
END
$$;
