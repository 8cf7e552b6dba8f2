-- Returns the currency of the amounts in the database. It is the given one until there are amounts, or servers that use another one; NULL
-- gives none.
CREATE OR REPLACE FUNCTION keep_currency(p_code text) RETURNS text
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_code text := (SELECT c.code FROM currency c);
BEGIN
  IF v_code = p_code OR p_code IS NULL OR EXISTS (SELECT FROM accounts a WHERE a.last_seq > 0) OR EXISTS (SELECT FROM topups)
      OR EXISTS (SELECT FROM servers s WHERE s.seen_at > clock_timestamp() - interval '20 seconds') THEN
    RETURN v_code;
  END IF;
  UPDATE currency SET code = p_code;
  RETURN p_code;
END
$$;
