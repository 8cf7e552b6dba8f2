-- Writes an event about a key, unless it is that of a playground. p_data is what its type adds to the key.
CREATE OR REPLACE FUNCTION write_key_event(p_lane smallint, p_id text, p_type text, p_data jsonb) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM write_event(p_lane, k.account_id, p_type, jsonb_build_object('key_id', k.id, 'name', k.name) || p_data)
    FROM keys k WHERE k.lane = p_lane AND k.id = p_id AND k.playground_of IS NULL;
END
$$;
