-- Who made a change, as events name it.
CREATE OR REPLACE FUNCTION actor_kind(p_caller caller) RETURNS text
  LANGUAGE sql IMMUTABLE
  RETURN CASE WHEN p_caller.kind IN ('key', 'member') THEN p_caller.kind ELSE 'operator' END;
