-- The keys of the items, with the data that admission needs: the calls that count, whether any call uses the key, and how many slots
-- they take at most: none if the server checked the addresses of the calls against other ranges than those of the key. Unknown keys are
-- omitted.
-- A function of its own, because the two halves of admission need different plans: this one needs one index look-up per
-- key, regardless of the table sizes when the plan was made; the other one needs a hash join.
CREATE OR REPLACE FUNCTION admitted_keys(p_items admit_item[], p_while_suspended admit_item[])
  RETURNS TABLE (
    n integer, calls integer, is_used boolean, slots integer, lane smallint, fingerprint bytea,
    key_id text, account_id text, key_name text, plan text,
    scopes smallint, rpm integer, visible_start text, visible_end text, expires_at timestamptz,
    revoked_at timestamptz, suspended_at timestamptz, balance_micros bigint, models text,
    allowed_cidrs text, price_list_version integer
  )
  LANGUAGE plpgsql STABLE ROWS 256
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
  RETURN QUERY
  SELECT a.n::integer, a.generate + a.read + a.keys + a.webhooks + a.billing + a.any_scope, c.generate IS NOT NULL AND v.is_checked,
         CASE WHEN v.is_checked THEN least(r.rpm, coalesce((k.scopes & 1) * c.generate + ((k.scopes >> 1) & 1) * c.read + ((k.scopes >> 2) & 1) * c.keys
           + ((k.scopes >> 3) & 1) * c.webhooks + ((k.scopes >> 4) & 1) * c.billing + c.any_scope, 0)) ELSE 0 END,
         k.lane, k.fingerprint, k.id, k.account_id, k.name, k.plan, k.scopes, r.rpm, k.visible_start, k.visible_end, k.expires_at,
         k.revoked_at, acc.suspended_at, acc.balance_micros, array_to_string(k.models, ','), v.cidrs,
         acc.price_list_version
  FROM unnest(p_items, p_while_suspended) WITH ORDINALITY AS a (
    lane, fingerprint, generate, read, keys, webhooks, billing, any_scope, cidrs, same_lane, same_fingerprint, suspended_generate, suspended_read,
    suspended_keys, suspended_webhooks, suspended_billing, suspended_any_scope, same_cidrs, n)
  JOIN keys k ON k.lane = a.lane AND k.fingerprint = a.fingerprint
  JOIN accounts acc ON acc.lane = k.lane AND acc.id = k.account_id
  JOIN plans p ON p.name = k.plan
  CROSS JOIN LATERAL (SELECT array_to_string(k.allowed_cidrs, ',')) AS t (cidrs)
  CROSS JOIN LATERAL (SELECT t.cidrs, t.cidrs IS NOT DISTINCT FROM a.cidrs) AS v (cidrs, is_checked)
  CROSS JOIN LATERAL (SELECT effective_rpm(k.rate_limit_rpm, k.may_exceed_plan, p.rpm)) AS r (rpm)
  CROSS JOIN LATERAL (
    SELECT CASE WHEN acc.suspended_at IS NULL THEN a.generate ELSE a.suspended_generate END,
           CASE WHEN acc.suspended_at IS NULL THEN a.read ELSE a.suspended_read END,
           CASE WHEN acc.suspended_at IS NULL THEN a.keys ELSE a.suspended_keys END,
           CASE WHEN acc.suspended_at IS NULL THEN a.webhooks ELSE a.suspended_webhooks END,
           CASE WHEN acc.suspended_at IS NULL THEN a.billing ELSE a.suspended_billing END,
           CASE WHEN acc.suspended_at IS NULL THEN a.any_scope ELSE a.suspended_any_scope END
  ) AS c (generate, read, keys, webhooks, billing, any_scope);
END
$$;
