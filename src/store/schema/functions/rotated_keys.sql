-- The rows of admission for the items that have the previous secret of a key.
CREATE OR REPLACE FUNCTION rotated_keys(p_items admit_item[]) RETURNS TABLE (
    n integer, state text, scopes smallint, granted integer, used integer, rpm integer, seconds_left integer,
    key_id text, account_id text, key_name text, plan text, visible_start text, visible_end text,
    balance_micros bigint, models text, allowed_cidrs text, current_fingerprint bytea, price_list_version integer
  )
  LANGUAGE plpgsql STABLE ROWS 1
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  SELECT i.n::integer, CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN s.expires_at <= v_now THEN 'expired' ELSE 'rotated' END,
         k.scopes, 0, NULL::integer, 0, 0, k.id, k.account_id, k.name, k.plan, s.visible_start, s.visible_end, 0::bigint, NULL::text, NULL::text, k.fingerprint,
         0
  FROM unnest(p_items) WITH ORDINALITY AS i (lane, fingerprint, generate, read, keys, webhooks, billing, any_scope, cidrs, n)
  JOIN previous_secrets s ON s.lane = i.lane AND s.fingerprint = i.fingerprint
  JOIN keys k ON k.lane = s.lane AND k.id = s.key_id;
END
$$;
