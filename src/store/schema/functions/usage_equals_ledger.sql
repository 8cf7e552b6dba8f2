-- Whether the usage of an account is that of its entries, archived ones included. Reads all of both.
CREATE OR REPLACE FUNCTION usage_equals_ledger(p_lane smallint, p_account_id text) RETURNS boolean
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_head archived_ledger;
BEGIN
  SELECT h.* INTO v_head FROM archived_heads(p_lane, p_account_id, p_account_id) h;
  RETURN (
    SELECT coalesce(sum(usage_fingerprint(u.quarter, u.key_id, u.model, u.user_id, u.price_version, u.price_tier, u.price_list_version, u.upstream, u.requests, u.input,
      u.cached_input, u.cache_write, u.output, u.reasoning, u.images, u.image_tokens, u.cost_micros, u.cache_write_1h, u.upstream_cost_micros, u.uncosted_micros)), 0)
    FROM usage_quarters u WHERE u.lane = p_lane AND u.account_id = p_account_id
  ) = coalesce(v_head.usage_fingerprint, 0) + (
    SELECT coalesce(sum(usage_fingerprint(e.quarter, e.key_id, e.model, e.user_id, e.price_version, e.price_tier, e.price_list_version, e.upstream, e.requests, e.input,
      e.cached_input, e.cache_write, e.output, e.reasoning, e.images, e.image_tokens, e.cost_micros, e.cache_write_1h, e.upstream_cost_micros, e.uncosted_micros)), 0)
    FROM usage_of_entries(p_lane, p_account_id, coalesce(v_head.seq, 0), (SELECT a.last_seq FROM accounts a
      WHERE a.lane = p_lane AND a.id = p_account_id)) e
    WHERE e.account_id = p_account_id AND e.requests > 0
  );
END
$$;
