-- Rows that show whether the database accepts writes, see probe_writes. Each row is alone on its page, so that each write
-- allocates space on the disk.
CREATE TABLE write_probes (
  at timestamptz NOT NULL,
  filler text NOT NULL
) WITH (fillfactor = 10, autovacuum_enabled = false);
