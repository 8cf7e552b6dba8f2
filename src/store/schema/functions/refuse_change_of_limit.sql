-- Refuses that a member or a key changes or removes a limit that an operator set.
CREATE OR REPLACE FUNCTION refuse_change_of_limit() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM refuse('invalid_argument', 'An operator of the service set this limit, and only operators can change or remove it.',
    '{"field":"limits"}');
END
$$;
