-- A page of an account's keys, newest first, or the one key that p_id names.
CREATE OR REPLACE FUNCTION view_keys(
  p_lane smallint, p_account_id text, p_id text, p_before text, p_limit integer, p_with_playground boolean DEFAULT true
) RETURNS SETOF key_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_ids text[];
BEGIN
  -- One statement per case: a single statement for all cases would read every key of the lane.
  IF p_id <> '' THEN
    v_ids := ARRAY[p_id];
  ELSIF p_before = '' THEN
    v_ids := ARRAY(SELECT k.id FROM keys k WHERE k.lane = p_lane AND k.account_id = p_account_id
                     AND (p_with_playground OR k.playground_of IS NULL)
                   ORDER BY k.id DESC LIMIT p_limit);
  ELSE
    v_ids := ARRAY(SELECT k.id FROM keys k WHERE k.lane = p_lane AND k.account_id = p_account_id AND k.id < p_before
                     AND (p_with_playground OR k.playground_of IS NULL)
                   ORDER BY k.id DESC LIMIT p_limit);
  END IF;
  RETURN QUERY SELECT * FROM keys_by_id(p_lane, v_ids) k WHERE k.account_id = p_account_id;
END
$$;
