-- The keys of the items, with the data that admission needs. Unknown keys are omitted.
-- A function of its own, because the two halves of admission need different plans: this one needs one index look-up per
-- key, regardless of the table sizes when the plan was made; the other one needs a hash join.
CREATE OR REPLACE FUNCTION admitted_keys(p_items admit_item[])
  RETURNS TABLE (
    n integer, generate integer, read integer, keys integer, lane smallint, fingerprint bytea, key_id text, account_id text, key_name text, plan text,
    scopes smallint, rpm integer, visible_start text, visible_end text, expires_at timestamptz,
    revoked_at timestamptz, suspended_at timestamptz, balance_micros bigint
  )
  LANGUAGE plpgsql STABLE ROWS 256
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
  RETURN QUERY
  SELECT a.n::integer, a.generate, a.read, a.keys, k.lane, k.fingerprint, k.id, k.account_id, k.name, k.plan, k.scopes,
         effective_rpm(k.rate_limit_rpm, k.may_exceed_plan, p.rpm), k.visible_start, k.visible_end, k.expires_at,
         k.revoked_at, acc.suspended_at, acc.balance_micros
  FROM unnest(p_items) WITH ORDINALITY AS a (lane, fingerprint, generate, read, keys, n)
  JOIN keys k ON k.lane = a.lane AND k.fingerprint = a.fingerprint
  JOIN accounts acc ON acc.lane = k.lane AND acc.id = k.account_id
  JOIN plans p ON p.name = k.plan;
END
$$;
