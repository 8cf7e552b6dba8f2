-- Gives new limits of an account or a key counters with what the usage of their windows is already. Those of a minute start at zero.
-- Users that the usage counts as "(other)" are not known, so that a counter of a user is not exact if there are any.
CREATE OR REPLACE FUNCTION count_spent(p_lane smallint, p_account_id text, p_owner_id text, p_limit_ids text[])
  RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_at timestamptz;
  v_version bigint;
  v_sums spent_sum[];
BEGIN
  SELECT greatest(clock_timestamp(), a.last_at), a.limits_version INTO v_at, v_version
    FROM accounts a WHERE a.lane = p_lane AND a.id = p_account_id;
  v_sums := ARRAY(
    SELECT ROW(l.id, CASE WHEN l.per_user THEN u.user_id ELSE '' END,
      sum(CASE l.metric WHEN 'cost' THEN u.cost_micros WHEN 'cost_alert' THEN u.cost_micros WHEN 'generations' THEN u.requests
        ELSE u.input + u.cached_input + u.cache_write + u.output + u.reasoning END))::spent_sum
    FROM limits l
    CROSS JOIN LATERAL (SELECT window_start(l.period, v_at) AS start) w
    JOIN usage_quarters u ON u.lane = p_lane AND u.account_id = p_account_id
      AND u.quarter >= CASE WHEN w.start = '-infinity' THEN 0 ELSE floor(extract(epoch FROM w.start) / 900)::integer END
    WHERE l.lane = p_lane AND l.id = ANY (p_limit_ids) AND l.period NOT IN ('', 'minute')
      AND (l.model = '' OR u.model = l.model)
      AND (p_owner_id = p_account_id OR u.key_id = p_owner_id OR EXISTS (
        SELECT 1 FROM keys k WHERE k.lane = p_lane AND k.id = u.key_id AND p_owner_id = ANY (k.ancestors)))
    GROUP BY l.id, CASE WHEN l.per_user THEN u.user_id ELSE '' END);
  IF cardinality(v_sums) = 0 THEN
    RETURN;
  END IF;
  PERFORM align_counters(p_lane, p_account_id, ARRAY(
    SELECT DISTINCT ROW(p_owner_id, '', s.user_id)::counter_name FROM unnest(v_sums) s), v_version, NULL, v_at);
  UPDATE limit_counters c SET counter.spent = n.spent, counter.counted_since = n.counted_since
  FROM (
    SELECT o.user_id, array_agg(coalesce(s.spent, x.spent) ORDER BY x.n) AS spent,
           array_agg(CASE WHEN s.limit_id IS NULL THEN x.counted_since
             WHEN x.per_user AND EXISTS (SELECT 1 FROM unnest(v_sums) i WHERE i.limit_id = x.limit_id AND i.user_id = '(other)')
               THEN 'infinity'::timestamptz ELSE '-infinity' END ORDER BY x.n) AS counted_since
    FROM limit_counters o
    CROSS JOIN LATERAL unnest((o.counter).limit_ids, (o.counter).per_users, (o.counter).spent, (o.counter).counted_since) WITH ORDINALITY
      AS x (limit_id, per_user, spent, counted_since, n)
    LEFT JOIN unnest(v_sums) s ON s.limit_id = x.limit_id AND s.user_id = o.user_id
    WHERE o.lane = p_lane AND o.account_id = p_account_id AND o.subject_id = p_owner_id AND o.plan = ''
    GROUP BY o.user_id
  ) n
  WHERE c.lane = p_lane AND c.account_id = p_account_id AND c.subject_id = p_owner_id AND c.plan = '' AND c.user_id = n.user_id;
END
$$;
