-- Erases what an account has many rows of, at most p_limit rows of each table. Returns whether it erased everything. Nothing may run in
-- the account. Rows are found by their places: statistics that are older than the rows of the account would join them in quadratic time.
CREATE OR REPLACE FUNCTION erase_account(p_lane smallint, p_id text, p_limit integer) RETURNS boolean
  LANGUAGE plpgsql
AS $$
DECLARE
  -- The data of events that can be about people. The other fields are ids, amounts and times.
  c_texts constant text[] := '{name,user,reason,url,email}';
  v_places tid[];
  v_most integer := 0;
BEGIN
  v_places := ARRAY(SELECT u.ctid FROM end_users u WHERE u.lane = p_lane AND u.account_id = p_id LIMIT p_limit FOR UPDATE);
  DELETE FROM end_users u WHERE u.ctid = ANY (v_places);
  v_most := greatest(v_most, cardinality(v_places));
  v_places := ARRAY(SELECT a.ctid FROM answers a WHERE a.lane = p_lane AND a.account_id = p_id LIMIT p_limit FOR UPDATE);
  DELETE FROM answers a WHERE a.ctid = ANY (v_places);
  v_most := greatest(v_most, cardinality(v_places));
  v_places := ARRAY(SELECT f.ctid FROM failures f WHERE f.lane = p_lane AND f.account_id = p_id LIMIT p_limit FOR UPDATE);
  DELETE FROM failures f WHERE f.ctid = ANY (v_places);
  v_most := greatest(v_most, cardinality(v_places));
  v_places := ARRAY(SELECT d.ctid FROM deliveries d
    WHERE d.lane = p_lane AND d.account_id = p_id
      AND d.webhook_id = ANY (ARRAY(SELECT w.id FROM webhooks w WHERE w.lane = p_lane AND w.account_id = p_id))
    LIMIT p_limit FOR UPDATE);
  DELETE FROM deliveries d WHERE d.ctid = ANY (v_places);
  v_most := greatest(v_most, cardinality(v_places));
  v_places := ARRAY(SELECT e.ctid FROM events e
    WHERE e.lane = p_lane AND e.account_id = p_id AND e.data ?| c_texts LIMIT p_limit FOR UPDATE);
  UPDATE events e SET data = e.data - c_texts WHERE e.ctid = ANY (v_places);
  v_most := greatest(v_most, cardinality(v_places));
  v_places := ARRAY(SELECT k.ctid FROM keys k
    WHERE k.lane = p_lane AND k.account_id = p_id AND (k.name <> '' OR k.allowed_cidrs IS NOT NULL) LIMIT p_limit FOR UPDATE);
  UPDATE keys k SET name = '', allowed_cidrs = NULL, playground_of = NULL WHERE k.ctid = ANY (v_places);
  v_most := greatest(v_most, cardinality(v_places));
  v_places := ARRAY(SELECT t.ctid FROM topups t
    WHERE t.lane = p_lane AND t.account_id = p_id
      AND (t.return_url, t.page_url, t.receipt_url, t.invoice_url, coalesce(t.idempotency_key, '')) <> ('', '', '', '', '') LIMIT p_limit FOR UPDATE);
  UPDATE topups t SET return_url = '', page_url = '', receipt_url = '', invoice_url = '', idempotency_key = NULL WHERE t.ctid = ANY (v_places);
  RETURN greatest(v_most, cardinality(v_places)) < p_limit;
END
$$;
