-- Refuses a limit that a member sets above that of the plan. Only operators may exceed it.
CREATE OR REPLACE FUNCTION check_member_rpm(p_act text, p_rate_limit_rpm integer, p_plan plans) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF actor_kind(p_act) = 'member' AND p_rate_limit_rpm > p_plan.rpm THEN
    PERFORM refuse('invalid_argument', format('must be at most %s, the limit of the plan "%s"', p_plan.rpm, p_plan.name),
      '{"field":"rate_limit_rpm"}');
  END IF;
END
$$;
