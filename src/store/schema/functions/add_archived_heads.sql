-- Selects the entries of a lane for the archive of this month: those of each account up to the last one that was created before
-- the end of the month, after the previous archive. Returns their number.
CREATE OR REPLACE FUNCTION add_archived_heads(p_lane smallint, p_month integer) RETURNS TABLE (entries bigint)
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  c_end constant timestamptz := make_timestamptz(1970 + (p_month + 1) / 12, (p_month + 1) % 12 + 1, 1, 0, 0, 0, 'UTC');
  v_last_seq bigint;
  r record;
BEGIN
  entries := 0;
  FOR r IN
    SELECT a.id, a.last_seq, coalesce(h.seq, 0) AS seq, coalesce(h.usage_fingerprint, 0) AS fingerprint
    FROM accounts a LEFT JOIN archived_heads(p_lane, '', NULL) h ON h.account_id = a.id
    WHERE a.lane = p_lane AND a.last_seq > coalesce(h.seq, 0)
  LOOP
    v_last_seq := seq_at(p_lane, r.id, c_end, r.last_seq) - 1;
    CONTINUE WHEN v_last_seq <= r.seq;
    INSERT INTO archived_ledger
    SELECT p_lane, r.id, p_month, extract(epoch FROM c_end) / 900, v_last_seq, l.balance_after_micros, l.hash,
           r.fingerprint + (
             SELECT coalesce(sum(e.fingerprint), 0) FROM usage_of_entries(p_lane, r.id, r.seq, v_last_seq - r.seq) e
             WHERE e.account_id = r.id)
    FROM ledger l WHERE l.lane = p_lane AND l.account_id = r.id AND l.seq = v_last_seq;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'the ledger of % has no row %', r.id, v_last_seq;
    END IF;
    entries := entries + v_last_seq - r.seq;
  END LOOP;
  RETURN NEXT;
END
$$;
