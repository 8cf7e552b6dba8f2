-- Writes the events limit.threshold of the limit p_i of a counter, if a charge raises the spent
-- amount to p_spent and crosses 80 or 100 % of the limit's amount. p_user is the end user of the call.
CREATE OR REPLACE FUNCTION write_limit_events(
  p_lane smallint, p_account_id text, p_user text, p_counter limit_counter, p_i integer, p_spent bigint
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_amount constant bigint := p_counter.amounts[p_i];
BEGIN
  IF p_counter.metrics[p_i] IN ('cost', 'cost_alert', 'tokens') AND p_counter.periods[p_i] IN ('day', 'week', 'month', 'total') THEN
    PERFORM write_event(p_lane, p_account_id, 'limit.threshold', jsonb_build_object('percent', t.percent,
      'user', CASE WHEN p_counter.user_id IN ('', '(other)') THEN p_counter.user_id ELSE p_user END, 'limit', jsonb_build_object('id', p_counter.limit_ids[p_i],
        'metric', p_counter.metrics[p_i], 'window', p_counter.periods[p_i], 'amount', v_amount,
        'model', p_counter.models[p_i], 'per', CASE WHEN p_counter.per_users[p_i] THEN 'user' ELSE '' END,
        'owner', CASE WHEN p_counter.plan <> '' THEN 'plan' WHEN p_counter.subject_id = p_account_id THEN 'account' ELSE 'key' END,
        'owner_id', coalesce(nullif(p_counter.plan, ''), p_counter.subject_id), 'spent', p_spent,
        'resets_at', nullif(p_counter.window_ends[p_i], 'infinity'))))
      FROM unnest(ARRAY[80, 100]) WITH ORDINALITY AS t (percent, n)
      WHERE p_counter.spent[p_i] * 100 < v_amount * t.percent AND p_spent * 100 >= v_amount * t.percent ORDER BY t.n;
  END IF;
END
$$;
