-- The hash of a version of an account's prices: sha256(hash of the previous version ‖ fields).
CREATE OR REPLACE FUNCTION account_price_hash(p_before bytea, p_row account_prices) RETURNS bytea
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN sha256(p_before || convert_to(concat_ws(':', p_row.lane, p_row.account_id, p_row.version,
    coalesce(p_row.discount::text, '-'), coalesce(p_row.rates::text, '-'),
    (extract(epoch FROM p_row.effective_from) * 1000000)::bigint, p_row.model), 'UTF8'));
