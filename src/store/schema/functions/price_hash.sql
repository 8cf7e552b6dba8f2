-- The hash of a version of prices: sha256(hash of the previous version ‖ fields).
CREATE OR REPLACE FUNCTION price_hash(p_before bytea, p_row price_versions) RETURNS bytea
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN sha256(p_before || convert_to(concat_ws(':', p_row.version, p_row.rates,
    (extract(epoch FROM p_row.effective_from) * 1000000)::bigint, p_row.model), 'UTF8'));
