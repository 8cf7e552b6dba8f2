-- What the first cell shares with the others, as JSON: plans with their limits, operators without their identities, prices,
-- and webhooks of operators.
CREATE OR REPLACE FUNCTION read_shared_data()
  RETURNS TABLE (version bigint, plans text, limits text, operators text, prices text, webhooks text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY
  SELECT s.version, (SELECT coalesce(json_agg(p), '[]')::text FROM plans p),
         (SELECT coalesce(json_agg(l), '[]')::text FROM limits l WHERE l.lane = no_lane()),
         (SELECT coalesce(json_agg(json_build_object('id', o.id, 'name', o.name, 'role', o.role,
            'fingerprint', o.fingerprint, 'created_at', o.created_at, 'revoked_at', o.revoked_at)), '[]')::text FROM operators o),
         (SELECT coalesce(json_agg(v), '[]')::text FROM price_versions v),
         (SELECT coalesce(json_agg(w), '[]')::text FROM webhooks w WHERE w.lane = no_lane())
  FROM shared_data s;
END
$$;
