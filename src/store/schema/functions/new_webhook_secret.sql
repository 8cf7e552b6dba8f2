-- A secret of 32 bytes, 244 bits of them random. It is made here, so that no statement has it as a parameter, which logs may show.
CREATE OR REPLACE FUNCTION new_webhook_secret() RETURNS text
  LANGUAGE sql VOLATILE
AS $$
  SELECT 'whsec_' || encode(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()), 'base64')
$$;
