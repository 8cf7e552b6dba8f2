-- Records a change by an operator or a member. The functions that change something call it in the same transaction.
-- The operator may have been revoked, the member removed, or either given another role, since the call was authenticated: then nothing
-- is changed. A person who joins acts without a role.
CREATE OR REPLACE FUNCTION log_change(p_act text, p_lane smallint, p_target text, p_account_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_act constant operator_act := json_populate_record(NULL::operator_act, p_act::json);
  v_role text;
BEGIN
  IF v_act.actor_id LIKE 'op\_%' THEN
    -- The lock keeps the operator and its role until the change is stored. Operators may revoke themselves.
    SELECT o.role INTO v_role FROM operators o
      WHERE o.id = v_act.actor_id AND (o.revoked_at IS NULL OR o.id = p_target) FOR SHARE;
    IF NOT FOUND THEN
      PERFORM refuse('invalid_operator_token');
    ELSIF v_role <> p_act::json->>'actor_role' THEN
      PERFORM refuse('insufficient_role', 'Your role has changed. Repeat the call.');
    END IF;
  ELSIF v_act.actor_id LIKE 'usr\_%' THEN
    SELECT m.role INTO v_role FROM members m
      WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = v_act.actor_id FOR SHARE;
    IF NOT FOUND THEN
      PERFORM refuse('invalid_session');
    ELSIF v_role <> p_act::json->>'actor_role' THEN
      PERFORM refuse('insufficient_role', 'Your role in the account has changed. Repeat the call.');
    END IF;
  END IF;
  PERFORM append_operator_event(v_act, p_lane, p_target, p_account_id, 'ok');
END
$$;
