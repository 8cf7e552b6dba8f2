-- Stores the page of a top-up on which the customer pays. A repetition changes nothing.
CREATE OR REPLACE FUNCTION set_topup_page(p_lane smallint, p_id text, p_page_id text, p_page_url text) RETURNS SETOF topups
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM require_lane(p_lane);
  UPDATE topups SET page_id = p_page_id, page_url = p_page_url WHERE lane = p_lane AND id = p_id AND page_id IS NULL;
  RETURN QUERY SELECT t.* FROM topups t WHERE t.lane = p_lane AND t.id = p_id;
END
$$;
