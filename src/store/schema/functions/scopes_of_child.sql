-- The scopes of a key that another key creates: those of the call, by default those of p_default that the parent
-- has. Refuses a scope that the parent lacks.
CREATE OR REPLACE FUNCTION scopes_of_child(p_parent smallint, p_named smallint, p_default smallint) RETURNS smallint
  LANGUAGE plpgsql IMMUTABLE
AS $$
BEGIN
  IF p_named & ~p_parent <> 0 THEN
    PERFORM refuse('invalid_argument', format('must be among the scopes of the calling key: %s', names_of_scopes(p_parent)),
      '{"field":"scopes"}');
  ELSIF p_named = 0 AND p_parent & p_default = 0 THEN
    PERFORM refuse('invalid_argument',
      format('must be given, because the calling key has none of the default scopes; it has: %s', names_of_scopes(p_parent)),
      '{"field":"scopes"}');
  END IF;
  RETURN CASE WHEN p_named = 0 THEN p_parent & p_default ELSE p_named END;
END
$$;
