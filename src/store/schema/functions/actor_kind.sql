-- Who made a change, as events name it. p_act is NULL for a key of the account.
CREATE OR REPLACE FUNCTION actor_kind(p_act text) RETURNS text
  LANGUAGE sql IMMUTABLE
  RETURN CASE WHEN p_act IS NULL THEN 'key' WHEN p_act::json->>'actor_id' LIKE 'usr\_%' THEN 'member' ELSE 'operator' END;
