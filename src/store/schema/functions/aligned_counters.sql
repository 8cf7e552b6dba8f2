-- What counters must contain at a time: the definitions as they are now, with what the rows have counted. New limits start at zero.
CREATE OR REPLACE FUNCTION aligned_counters(p_lane smallint, p_account_id text, p_names counter_name[], p_at timestamptz)
  RETURNS TABLE (place tid, counter limit_counter, valid_until timestamptz)
  LANGUAGE plpgsql STABLE ROWS 2
AS $$
BEGIN
  RETURN QUERY
  SELECT o.place, ROW(n.subject_id, n.plan, n.user_id, d.limit_ids, d.metrics, d.periods, d.models, d.per_users, d.amounts,
           d.window_ends, d.spent, d.held, d.counted_since)::limit_counter, d.valid_until
  FROM unnest(p_names) AS n (subject_id, plan, user_id)
  LEFT JOIN LATERAL (SELECT i.ctid AS place, i.counter FROM limit_counters i
    WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.subject_id = n.subject_id AND i.plan = n.plan
      AND i.user_id = n.user_id LIMIT 1) o ON true
  CROSS JOIN LATERAL (
    SELECT coalesce(min(l.temporary_until) FILTER (WHERE l.temporary_until > p_at), 'infinity') AS valid_until,
           coalesce(array_agg(l.id ORDER BY l.id), '{}') AS limit_ids,
           coalesce(array_agg(l.metric ORDER BY l.id), '{}') AS metrics,
           coalesce(array_agg(l.period ORDER BY l.id), '{}') AS periods,
           coalesce(array_agg(l.model ORDER BY l.id), '{}') AS models,
           coalesce(array_agg(l.per_user ORDER BY l.id), '{}') AS per_users,
           coalesce(array_agg(CASE WHEN l.temporary_until > p_at THEN l.temporary_amount ELSE l.amount END ORDER BY l.id), '{}')
             AS amounts,
           coalesce(array_agg(coalesce(c.window_end, window_end(l.period, p_at)) ORDER BY l.id), '{}') AS window_ends,
           coalesce(array_agg(coalesce(c.spent, 0) ORDER BY l.id), '{}') AS spent,
           coalesce(array_agg(coalesce(c.held, 0) ORDER BY l.id), '{}') AS held,
           coalesce(array_agg(coalesce(c.counted_since, p_at) ORDER BY l.id), '{}') AS counted_since
    FROM limits l
    LEFT JOIN unnest((o.counter).limit_ids, (o.counter).window_ends, (o.counter).spent, (o.counter).held,
        (o.counter).counted_since)
      AS c (limit_id, window_end, spent, held, counted_since) ON c.limit_id = l.id
    WHERE l.lane = CASE n.plan WHEN '' THEN p_lane ELSE 1024 END
      AND l.owner_id = CASE n.plan WHEN '' THEN n.subject_id ELSE n.plan END AND (l.per_user OR n.user_id = '')
  ) d;
END
$$;
