-- The accounts of a person that were closed within 30 days, the last one first.
CREATE OR REPLACE FUNCTION list_closed_accounts(p_person_id text) RETURNS TABLE (account_id text, closed_at timestamptz)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT c.account_id, c.closed_at FROM closed_accounts c
    WHERE c.person_id = p_person_id AND c.closed_at > clock_timestamp() - interval '30 days' ORDER BY c.closed_at DESC;
END
$$;
