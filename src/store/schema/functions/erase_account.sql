-- Erases what an account has many rows of, at most p_limit rows of each table. Returns whether it erased everything. Nothing may run in
-- the account.
CREATE OR REPLACE FUNCTION erase_account(p_lane smallint, p_id text, p_limit integer) RETURNS boolean
  LANGUAGE plpgsql
AS $$
DECLARE
  -- The data of events that can be about people. The other fields are ids, amounts and times.
  c_texts constant text[] := '{name,user,reason,url,email}';
  v_most bigint := 0;
  v_rows bigint;
BEGIN
  DELETE FROM end_users u USING (SELECT i.user_id FROM end_users i WHERE i.lane = p_lane AND i.account_id = p_id LIMIT p_limit) o
    WHERE u.lane = p_lane AND u.account_id = p_id AND u.user_id = o.user_id;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  v_most := greatest(v_most, v_rows);
  DELETE FROM answers a USING (SELECT i.idempotency_key FROM answers i WHERE i.lane = p_lane AND i.account_id = p_id LIMIT p_limit) o
    WHERE a.lane = p_lane AND a.account_id = p_id AND a.idempotency_key = o.idempotency_key;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  v_most := greatest(v_most, v_rows);
  DELETE FROM failures f USING (SELECT i.id FROM failures i WHERE i.lane = p_lane AND i.account_id = p_id LIMIT p_limit) o
    WHERE f.lane = p_lane AND f.account_id = p_id AND f.id = o.id;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  v_most := greatest(v_most, v_rows);
  DELETE FROM deliveries d USING (
      SELECT i.seq, i.webhook_id FROM deliveries i JOIN webhooks w ON w.lane = p_lane AND w.id = i.webhook_id AND w.account_id = p_id
      WHERE i.lane = p_lane AND i.account_id = p_id LIMIT p_limit) o
    WHERE d.lane = p_lane AND d.account_id = p_id AND d.seq = o.seq AND d.webhook_id = o.webhook_id;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  v_most := greatest(v_most, v_rows);
  UPDATE events e SET data = e.data - c_texts
    FROM (SELECT i.seq FROM events i WHERE i.lane = p_lane AND i.account_id = p_id AND i.data ?| c_texts LIMIT p_limit) o
    WHERE e.lane = p_lane AND e.account_id = p_id AND e.seq = o.seq;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  v_most := greatest(v_most, v_rows);
  UPDATE keys k SET name = '', allowed_cidrs = NULL
    FROM (SELECT i.id FROM keys i WHERE i.lane = p_lane AND i.account_id = p_id AND (i.name <> '' OR i.allowed_cidrs IS NOT NULL)
      LIMIT p_limit) o
    WHERE k.lane = p_lane AND k.id = o.id;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  v_most := greatest(v_most, v_rows);
  UPDATE topups t SET return_url = '', page_url = '', receipt_url = '', idempotency_key = NULL
    FROM (SELECT i.id FROM topups i WHERE i.lane = p_lane AND i.account_id = p_id
      AND (i.return_url, i.page_url, i.receipt_url, coalesce(i.idempotency_key, '')) <> ('', '', '', '') LIMIT p_limit) o
    WHERE t.lane = p_lane AND t.id = o.id;
  GET DIAGNOSTICS v_rows = ROW_COUNT;
  RETURN greatest(v_most, v_rows) < p_limit;
END
$$;
