-- Writes an event about a key, unless it is that of a playground. p_data is what its type adds to the key.
CREATE OR REPLACE FUNCTION write_key_event(p_key keys, p_type text, p_data jsonb) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_key.playground_of IS NULL THEN
    PERFORM write_event(p_key.lane, p_key.account_id, p_type, jsonb_build_object('key_id', p_key.id, 'name', p_key.name) || p_data);
  END IF;
END
$$;
