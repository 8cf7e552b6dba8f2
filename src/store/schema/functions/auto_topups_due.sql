-- Accounts whose page for a payment method should be looked up now, or whose month with too many automatic top-ups is over; at most p_limit.
-- Each is returned to one server.
CREATE OR REPLACE FUNCTION auto_topups_due(p_limit integer) RETURNS TABLE (account_id text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_elsewhere constant smallint[] := ARRAY(SELECT l.lane FROM lanes l WHERE NOT l.is_owned);
BEGIN
  RETURN QUERY UPDATE auto_topups s SET due_at = v_now + interval '1 minute'
    FROM (SELECT o.lane, o.account_id FROM auto_topups o
      WHERE o.due_at <= v_now AND o.lane <> ALL (v_elsewhere)
      ORDER BY o.due_at LIMIT p_limit FOR UPDATE SKIP LOCKED) due
    WHERE s.lane = due.lane AND s.account_id = due.account_id
    RETURNING s.account_id;
END
$$;
