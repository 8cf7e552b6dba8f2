-- Locks a webhook for a change: one of the account, or with an empty account any. The lane is locked.
CREATE OR REPLACE FUNCTION lock_webhook(p_lane smallint, p_account_id text, p_id text) RETURNS webhooks
  LANGUAGE plpgsql
AS $$
DECLARE
  v_webhook webhooks;
BEGIN
  SELECT w.* INTO v_webhook FROM webhooks w
    WHERE w.lane = p_lane AND w.id = p_id AND p_account_id IN ('', w.account_id) FOR UPDATE;
  IF NOT FOUND THEN
    PERFORM refuse('not_found', format('There is no webhook %s.', p_id));
  END IF;
  RETURN v_webhook;
END
$$;
