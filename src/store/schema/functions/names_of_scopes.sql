-- The names of scopes, for texts.
CREATE OR REPLACE FUNCTION names_of_scopes(p_scopes smallint) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN concat_ws(', ', CASE WHEN p_scopes & 1 <> 0 THEN 'generate' END, CASE WHEN p_scopes & 2 <> 0 THEN 'read' END,
    CASE WHEN p_scopes & 4 <> 0 THEN 'keys' END, CASE WHEN p_scopes & 8 <> 0 THEN 'webhooks' END,
    CASE WHEN p_scopes & 16 <> 0 THEN 'billing' END);
