-- Keeps the schema on its worker until the transaction ends, as pin_schema does, and refuses the statement at another node. The
-- server then sends it to the worker.
CREATE OR REPLACE FUNCTION require_schema() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF NOT pin_schema() THEN
    RAISE EXCEPTION USING ERRCODE = 'VX002', MESSAGE = 'schema_moved';
  END IF;
END
$$;
