-- The accounts with a state, or all if it is empty, in an order: newest, name, lowest_balance, highest_balance (below an amount unless
-- it is NULL), spent_today or spent_month, which have only accounts that spent something. Those after (p_after, p_after_id) in this
-- order, at most p_limit; an empty p_after_id means from the start. The last four orders are those of the figures.
CREATE OR REPLACE FUNCTION sort_accounts(
  p_sort text, p_state text, p_below bigint, p_after text, p_after_id text, p_limit integer
) RETURNS TABLE (
    term text, lane smallint, id text, name text, plan text, balance_micros bigint, held_micros bigint, created_at timestamptz,
    suspended_at timestamptz, external_id text, email text, notes text, low_balance_micros bigint, owed_micros bigint,
    closed_at timestamptz, has_grants boolean, day_micros bigint, month_micros bigint
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_is_ascending constant boolean := p_sort IN ('name', 'lowest_balance');
  v_is_of_figures constant boolean := p_sort NOT IN ('newest', 'name');
  v_states constant text[] := CASE WHEN p_state <> '' OR NOT v_is_of_figures THEN ARRAY[p_state]
    ELSE ARRAY['active', 'suspended', 'closed'] END;
  v_term constant text := CASE p_sort WHEN 'newest' THEN '''''' WHEN 'name' THEN 'lower(i.name) COLLATE "C"'
    WHEN 'spent_today' THEN 'i.day_micros' WHEN 'spent_month' THEN 'i.month_micros' ELSE 'i.balance_micros' END;
  v_column constant text := CASE WHEN v_is_of_figures THEN 'i.account_id' ELSE 'i.id' END;
  v_id constant text := v_column || ' COLLATE "C"';
  v_place constant text := CASE p_sort WHEN 'newest' THEN v_id ELSE format('(%s, %s)', v_term, v_id) END;
  v_direction constant text := CASE WHEN v_is_ascending THEN 'ASC' ELSE 'DESC' END;
  v_conditions text := CASE
    WHEN p_sort = 'spent_today' THEN 'i.state = s.state AND i.day_micros > 0 AND i.day = (SELECT t.day FROM day_and_month(now()) t)'
    WHEN p_sort = 'spent_month' THEN 'i.state = s.state AND i.month_micros > 0 AND i.month = (SELECT t.month FROM day_and_month(now()) t)'
    WHEN v_is_of_figures THEN 'i.state = s.state AND ($4 IS NULL OR i.balance_micros < $4)'
    WHEN p_state = '' THEN 'true'
    WHEN p_state = 'active' THEN 'i.suspended_at IS NULL'
    WHEN p_state = 'suspended' THEN 'i.suspended_at IS NOT NULL AND i.closed_at IS NULL'
    ELSE 'i.suspended_at IS NOT NULL AND i.closed_at IS NOT NULL' END;
BEGIN
  IF p_after_id <> '' THEN
    v_conditions := v_conditions || format(' AND %s %s %s', v_place, CASE WHEN v_is_ascending THEN '>' ELSE '<' END, CASE
      WHEN p_sort = 'newest' THEN '$3' WHEN p_sort = 'name' THEN '($2, $3)' ELSE '($2::bigint, $3)' END);
  END IF;
  RETURN QUERY EXECUTE format($query$
    SELECT f.term::text, a.*
    FROM (
      SELECT o.* FROM unnest($1) s (state)
      CROSS JOIN LATERAL (
        -- Without the collation, which the primary keys do not have.
        SELECT %1$s AS term, i.lane, %7$s AS account_id FROM %3$s i
        WHERE %4$s ORDER BY %5$s %2$s %6$s LIMIT $5
      ) o
      ORDER BY o.term %6$s, o.account_id COLLATE "C" %6$s LIMIT $5
    ) f
    JOIN account_views a ON a.lane = f.lane AND a.id = f.account_id
    ORDER BY f.term %6$s, f.account_id COLLATE "C" %6$s
  $query$, v_term, v_id, CASE WHEN v_is_of_figures THEN 'account_figures' ELSE 'accounts' END, v_conditions,
    CASE p_sort WHEN 'newest' THEN '' ELSE format('%s %s,', v_term, v_direction) END, v_direction,
    v_column)
    USING v_states, p_after, p_after_id, p_below, p_limit;
END
$$;
