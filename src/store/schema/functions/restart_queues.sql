-- Lets the queues of webhooks of a lane, or of operators, start anew: they are due, no pause counts, and they count as slow, like new ones.
CREATE OR REPLACE FUNCTION restart_queues(p_lane smallint, p_ids text[]) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM 1 FROM webhook_queues q WHERE (q.lane = p_lane OR q.is_of_operators) AND q.webhook_id = ANY (p_ids)
    ORDER BY q.lane, q.webhook_id FOR UPDATE;
  UPDATE webhook_queues q SET due_at = clock_timestamp(), blocked_until = '-infinity', is_slow = true
    WHERE (q.lane = p_lane OR q.is_of_operators) AND q.webhook_id = ANY (p_ids);
END
$$;
