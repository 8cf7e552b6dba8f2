-- Ends the wait of the queues of lanes that this cell owns from now on. Claims that began before are waited for, because they may not
-- see the change of the owner.
CREATE OR REPLACE FUNCTION unblock_queues(p_lanes smallint[]) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  LOCK TABLE webhook_queues IN EXCLUSIVE MODE;
  UPDATE webhook_queues q SET blocked_until = '-infinity' WHERE q.lane = ANY (p_lanes) AND q.blocked_until = 'infinity';
END
$$;
