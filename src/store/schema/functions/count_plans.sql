-- The number of accounts that are not closed and of active keys on each plan, in the lanes of the cell.
CREATE OR REPLACE FUNCTION count_plans() RETURNS TABLE (plan text, accounts bigint, keys bigint)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_elsewhere constant smallint[] := ARRAY(SELECT l.lane FROM lanes l WHERE NOT l.is_owned);
BEGIN
  RETURN QUERY
  SELECT p.name, coalesce(a.accounts, 0), coalesce(k.keys, 0)
  FROM plans p
  LEFT JOIN (
    SELECT i.plan, count(*) AS accounts FROM accounts i
    WHERE i.closed_at IS NULL AND i.lane <> ALL (v_elsewhere) GROUP BY i.plan
  ) a ON a.plan = p.name
  LEFT JOIN (
    SELECT i.plan, count(*) AS keys FROM keys i
    WHERE i.revoked_at IS NULL AND coalesce(i.expires_at, 'infinity') > clock_timestamp() AND i.lane <> ALL (v_elsewhere)
    GROUP BY i.plan
  ) k ON k.plan = p.name;
END
$$;
