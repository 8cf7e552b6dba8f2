-- Raises a refusal for the caller. The reason is in the server's error table, which has the default text. An amount in the text is written as {5 micros};
-- the server formats it.
-- PostgreSQL logs the texts, so they contain only names of fields, numbers and stored values, never a value of the call.
CREATE OR REPLACE FUNCTION refuse(p_reason text, p_message text DEFAULT '', p_metadata jsonb DEFAULT '{}') RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'VX000', MESSAGE = p_reason, DETAIL = p_message, HINT = p_metadata::text;
END
$$;
