-- Gives new end users of a day a name of their own in the usage, in order of arrival, while their account has fewer than
-- 1,000 of them on that day. The rows of an account have one time. The caller holds the locks of the lanes.
CREATE OR REPLACE FUNCTION name_users(p_rows ledger[]) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  -- Users of earlier days are no longer needed.
  DELETE FROM usage_users n USING (
    SELECT DISTINCT c.lane, c.account_id, d.day FROM unnest(p_rows) r
    CROSS JOIN LATERAL (SELECT floor(extract(epoch FROM r.created_at) / 86400)::integer AS day) d
    JOIN usage_user_counts c ON c.lane = r.lane AND c.account_id = r.account_id
    WHERE r.user_id <> '' AND c.day < d.day
  ) old WHERE n.lane = old.lane AND n.account_id = old.account_id AND n.day < old.day;
  WITH named AS MATERIALIZED (
    INSERT INTO usage_users (lane, account_id, day, user_id)
    SELECT t.lane, t.account_id, t.day, t.user_id FROM (
      SELECT f.lane, f.account_id, f.day, f.user_id,
             row_number() OVER (PARTITION BY f.lane, f.account_id ORDER BY f.seq) + coalesce(c.users, 0) AS number
      FROM (
        SELECT r.lane, r.account_id, floor(extract(epoch FROM r.created_at) / 86400)::integer AS day, r.user_id,
               min(r.seq) AS seq
        FROM unnest(p_rows) r WHERE r.kind = 'generation' AND r.user_id <> ''
        GROUP BY r.lane, r.account_id, 3, r.user_id
      ) f
      LEFT JOIN usage_user_counts c ON c.lane = f.lane AND c.account_id = f.account_id AND c.day = f.day
      WHERE NOT EXISTS (SELECT 1 FROM usage_users n
        WHERE n.lane = f.lane AND n.account_id = f.account_id AND n.day = f.day AND n.user_id = f.user_id)
    ) t WHERE t.number <= 1000
    RETURNING lane, account_id, day
  )
  INSERT INTO usage_user_counts AS c (lane, account_id, day, users)
  SELECT n.lane, n.account_id, n.day, count(*) FROM named n GROUP BY n.lane, n.account_id, n.day
  ON CONFLICT ON CONSTRAINT usage_user_counts_pkey DO UPDATE SET
    users = CASE c.day WHEN excluded.day THEN c.users ELSE 0 END + excluded.users, day = excluded.day;
END
$$;
