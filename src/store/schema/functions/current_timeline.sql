-- The timeline of this primary. Each promotion begins a new one.
CREATE OR REPLACE FUNCTION current_timeline() RETURNS text
  LANGUAGE sql STABLE
AS $$
  SELECT substring(pg_walfile_name(pg_current_wal_lsn()) FOR 8)
$$;
