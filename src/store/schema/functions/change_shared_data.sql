-- Marks the shared data as changed, so that it is copied to the other cells. Its lock orders the changes; a transaction
-- takes it last.
CREATE OR REPLACE FUNCTION change_shared_data() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  UPDATE shared_data SET version = version + 1;
END
$$;
