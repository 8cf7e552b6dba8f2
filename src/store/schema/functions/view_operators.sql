-- A page of operators, newest first, or the one that p_id names. An empty p_before means the first page.
CREATE OR REPLACE FUNCTION view_operators(p_id text, p_before text, p_limit integer) RETURNS SETOF operator_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY
  SELECT o.id, o.name, o.role, CASE WHEN o.revoked_at IS NULL THEN 'active' ELSE 'revoked' END, o.created_at,
         o.revoked_at, o.last_used_at, o.email, o.subject IS NOT NULL
  FROM operators o
  WHERE (p_id = '' OR o.id = p_id) AND (p_before = '' OR o.id < p_before)
  ORDER BY o.id DESC LIMIT p_limit;
END
$$;
