-- Records a file whose entries are verified, so that they may be removed.
CREATE OR REPLACE FUNCTION add_archive(p_month integer, p_file text, p_sha256 bytea, p_entries bigint) RETURNS void
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
AS $$
BEGIN
  INSERT INTO ledger_archives (month, file, sha256, entries) VALUES (p_month, p_file, p_sha256, p_entries);
END
$$;
