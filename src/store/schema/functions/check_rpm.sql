-- Refuses requests per minute that only an operator may give: more than the plan has, or than an operator gave to the key. p_key is NULL
-- for a new key.
CREATE OR REPLACE FUNCTION check_rpm(p_key keys, p_rate_limit_rpm integer, p_plan plans) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_key.may_exceed_plan THEN
    IF coalesce(p_rate_limit_rpm, p_plan.rpm) > p_key.rate_limit_rpm THEN
      PERFORM refuse('invalid_argument', format('must be at most %s, the limit that an operator set for this key', p_key.rate_limit_rpm),
        '{"field":"rate_limit_rpm"}');
    END IF;
  ELSIF p_rate_limit_rpm > p_plan.rpm THEN
    PERFORM refuse('invalid_argument', format('must be at most %s, the limit of the plan "%s"', p_plan.rpm, p_plan.name),
      '{"field":"rate_limit_rpm"}');
  END IF;
END
$$;
