-- Refuses values of a key that exceed those of the calling key. Values that are not given (NULL) are the calling key's.
CREATE OR REPLACE FUNCTION check_key_bounds(
  p_caller keys, p_max_rpm integer, p_rate_limit_rpm integer, p_expires_at timestamptz, p_models text[],
  p_allowed_cidrs cidr[]
) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_rate_limit_rpm > p_max_rpm THEN
    PERFORM refuse('invalid_argument',
      format('must be at most %s, the lower of the limits of the calling key and of its plan "%s"', p_max_rpm, p_caller.plan),
      '{"field":"rate_limit_rpm"}');
  END IF;
  IF p_expires_at > p_caller.expires_at THEN
    PERFORM refuse('invalid_argument',
      format('must be no later than %s, when the calling key expires',
        to_char(p_caller.expires_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
      '{"field":"expires_at"}');
  END IF;
  IF NOT p_models <@ p_caller.models THEN
    PERFORM refuse('invalid_argument',
      format('must be among the models of the calling key: %s', array_to_string(p_caller.models, ', ')), '{"field":"models"}');
  END IF;
  IF p_caller.allowed_cidrs IS NOT NULL THEN
    PERFORM check_cidr_bounds(p_caller.allowed_cidrs, p_allowed_cidrs);
  END IF;
END
$$;
