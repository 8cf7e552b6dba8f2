-- The limits that apply to holds, in the order of lanes, accounts and holds.
CREATE OR REPLACE FUNCTION limits_of_holds(p_holds hold_item[], p_limited_plans text[], p_now timestamptz) RETURNS hold_limit[]
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_with_plans constant boolean := cardinality(p_limited_plans) > 0;
BEGIN
  RETURN ARRAY(
    SELECT ROW(s.n, min(s.i) OVER same, count(*) OVER same > 1, s.at, s.id, s.owner_id, s.metric, s.period, s.amount, s.model,
      s.per_user, s.spent, s.held, s.needed, s.window_end, s.place,
      ROW(s.lane, s.account_id, s.id, s.subject_id, s.user_id, s.needed)::held_counter)::hold_limit
    FROM (
      SELECT e.n, e.lane, e.account_id, a.at, l.*, u.user_id, w.window_end, c.place, coalesce(c.held, 0) AS held,
             CASE WHEN c.window_end > a.at THEN c.spent ELSE 0 END AS spent,
             CASE l.metric WHEN 'cost' THEN e.amount WHEN 'tokens' THEN e.tokens ELSE 1 END AS needed,
             (row_number() OVER (ORDER BY e.lane, e.account_id, e.n))::integer AS i
      FROM unnest(p_holds) WITH ORDINALITY
        AS e (lane, account_id, generation_id, key_id, amount, seconds, idempotency_key, digest, model, user_id, tokens, n)
      -- Each limit of 1 keeps a look-up by key.
      CROSS JOIN LATERAL (SELECT greatest(p_now, i.last_at) AS at, i.is_limited FROM accounts i
        WHERE i.lane = e.lane AND i.id = e.account_id LIMIT 1) a
      CROSS JOIN LATERAL (SELECT i.plan, i.ancestors, i.is_limited FROM keys i
        WHERE i.lane = e.lane AND i.id = e.key_id LIMIT 1) k
      CROSS JOIN LATERAL limits_of_keys(e.lane, e.account_id, array_append(k.ancestors, e.key_id), v_with_plans, a.at) l
      CROSS JOIN LATERAL (SELECT CASE WHEN l.per_user AND e.user_id <> ''
        THEN counter_user(e.lane, e.account_id, l.id, l.subject_id, e.user_id) ELSE '' END AS user_id OFFSET 0) u
      CROSS JOIN LATERAL (SELECT window_end(l.period, a.at) AS window_end OFFSET 0) w
      LEFT JOIN LATERAL (SELECT i.ctid AS place, i.window_end, i.spent, i.held FROM limit_counters i
        WHERE i.lane = e.lane AND i.account_id = e.account_id AND i.limit_id = l.id AND i.subject_id = l.subject_id
          AND i.user_id = u.user_id LIMIT 1) c ON true
      WHERE (l.model = '' OR l.model = e.model) AND limits_apply(a.is_limited, k.is_limited, k.plan, k.ancestors, p_limited_plans)
    ) s
    WINDOW same AS (PARTITION BY s.account_id, s.id, s.subject_id, s.user_id)
    ORDER BY s.i);
END
$$;
