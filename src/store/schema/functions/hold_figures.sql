-- How many generations of all servers hold how much, and how many holds have expired.
CREATE OR REPLACE FUNCTION hold_figures() RETURNS TABLE (holds bigint, held_micros bigint, expired bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY
  SELECT count(*) FILTER (WHERE h.expires_at > clock_timestamp()), coalesce(sum(h.amount_micros), 0)::bigint,
         count(*) FILTER (WHERE h.expires_at <= clock_timestamp())
  FROM holds h;
END
$$;
