-- Returns, as JSON, the remaining amounts of the limits without the hold, and the limit that refuses it: the one with the longest wait.
-- p_counters are the counters with the hold, and p_held what it holds of them.
CREATE OR REPLACE FUNCTION explain_limits(p_counters limit_counter[], p_held held_counter[], p_at timestamptz) RETURNS text
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_text text;
BEGIN
  WITH applied AS MATERIALIZED (
    SELECT l.*, l.held - l.needed AS held_before, l.amount - l.spent - l.held + l.needed AS room,
           nullif(window_end(l.period, p_at), 'infinity') AS resets_at, CASE l.plan WHEN '' THEN l.subject_id ELSE l.plan END AS owner_id
    FROM generate_series(1, cardinality(p_counters)) n
    CROSS JOIN LATERAL (
      SELECT (p_counters[n]).subject_id, (p_counters[n]).plan, x.* FROM unnest((p_counters[n]).limit_ids, (p_counters[n]).metrics,
        (p_counters[n]).periods, (p_counters[n]).models, (p_counters[n]).per_users, (p_counters[n]).amounts,
        (p_counters[n]).spent, (p_counters[n]).held, (p_held[n]).amounts)
        AS x (id, metric, period, model, per_user, amount, spent, held, needed)
    ) l
    WHERE l.needed IS NOT NULL
  ), refusing AS (
    SELECT l.* FROM applied l WHERE l.needed > l.room
    ORDER BY CASE WHEN l.needed > l.amount THEN interval '1000 years'
      -- Running calls hold the missing amount.
      WHEN l.spent + l.needed <= l.amount THEN interval '0'
      ELSE coalesce(l.resets_at - p_at, interval '1000 years') END DESC
    LIMIT 1
  )
  SELECT json_build_object(
    'refusal', (SELECT json_build_object('id', r.id, 'owner_id', r.owner_id, 'metric', r.metric, 'window', r.period,
        'amount', r.amount::text, 'model', r.model, 'per', CASE WHEN r.per_user THEN 'user' ELSE '' END, 'spent', r.spent::text,
        'held', r.held_before::text, 'needed', r.needed::text, 'resets_at', floor(extract(epoch FROM r.resets_at)),
        'seconds_left', ceil(extract(epoch FROM r.resets_at - p_at))) FROM refusing r),
    'cost_room', (SELECT min(l.room)::text FROM applied l WHERE l.metric = 'cost'),
    'token_room', (SELECT min(l.room)::text FROM applied l WHERE l.metric = 'tokens'))::text INTO v_text;
  RETURN v_text;
END
$$;
