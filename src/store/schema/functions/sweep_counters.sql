-- Deletes counters of a lane that hold nothing: those of users whose windows passed a minute ago, and those of owners without limits.
-- The caller holds the lane.
CREATE OR REPLACE FUNCTION sweep_counters(p_lane smallint, p_now timestamptz) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  WITH old AS MATERIALIZED (
    SELECT c.account_id, c.subject_id, c.plan, c.user_id FROM limit_counters c
    WHERE c.lane = p_lane AND 0 = ALL ((c.counter).held) AND ((c.user_id <> '' AND c.expires_at < p_now - interval '1 minute') OR NOT EXISTS (
      SELECT 1 FROM limits l WHERE l.lane = CASE c.plan WHEN '' THEN p_lane ELSE 1024 END
        AND l.owner_id = CASE c.plan WHEN '' THEN c.subject_id ELSE c.plan END))
    LIMIT 1000
  ), deleted AS (
    DELETE FROM limit_counters c USING old o
    WHERE c.lane = p_lane AND c.account_id = o.account_id AND c.subject_id = o.subject_id AND c.plan = o.plan
      AND c.user_id = o.user_id
  )
  UPDATE limit_users u SET counters = u.counters - o.deleted
  FROM (SELECT d.account_id, count(*)::integer AS deleted FROM old d WHERE d.user_id <> '' GROUP BY d.account_id) o
  WHERE u.lane = p_lane AND u.account_id = o.account_id;
END
$$;
