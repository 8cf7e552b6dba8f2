-- The hash of a ledger row: sha256(hash of the previous row ‖ fields). Numbers are separated, and each text follows its length,
-- so two different rows never give the same bytes. The version comes first; this is the form of version 1.
-- In SQL, so that PostgreSQL inlines it: a call for each row of a batch is slower. So is a row as parameter.
CREATE OR REPLACE FUNCTION ledger_hash(
  p_before bytea, p_version smallint, p_account_id text, p_seq bigint, p_id text, p_month integer, p_kind entry_kind,
  p_amount_micros bigint, p_balance_after_micros bigint, p_reason text, p_request_id text, p_key_id text, p_model text,
  p_price_version integer, p_input integer, p_cached_input integer, p_cache_write integer, p_output integer,
  p_reasoning integer, p_images integer, p_image_tokens integer, p_user_id text, p_trace_id text,
  p_created_at timestamptz, p_cache_write_1h integer, p_price_tier integer,
  p_price_list_version integer, p_upstream text, p_upstream_cost_micros bigint, p_adjusted_id text
) RETURNS bytea
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN sha256(p_before || convert_to(concat_ws(':', p_version, p_seq, p_month, p_kind, p_amount_micros,
    p_balance_after_micros, p_price_version, p_input, p_cached_input, p_cache_write, p_output, p_reasoning, p_images,
    p_image_tokens, (extract(epoch FROM p_created_at) * 1000000)::bigint, p_cache_write_1h, p_price_tier, p_price_list_version,
    coalesce(p_upstream_cost_micros::text, '-'), octet_length(p_account_id), p_account_id,
    octet_length(p_id), p_id, octet_length(p_reason), p_reason, octet_length(p_request_id), p_request_id,
    octet_length(p_key_id), p_key_id, octet_length(p_model), p_model, octet_length(p_user_id), p_user_id,
    octet_length(p_trace_id), p_trace_id, octet_length(p_upstream), p_upstream,
    octet_length(p_adjusted_id), p_adjusted_id), 'UTF8'));
