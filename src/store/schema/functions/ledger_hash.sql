-- The hash of a ledger row: sha256(hash of the row before ‖ fields). Each field is written as <bytes>:<value>, so two
-- different rows never have the same text. The version is the first field; this is the form of version 1.
CREATE OR REPLACE FUNCTION ledger_hash(
  p_before bytea, p_version smallint, p_account_id text, p_seq bigint, p_id text, p_month integer, p_kind text,
  p_amount_micros bigint, p_balance_after_micros bigint, p_reason text, p_request_id text, p_key_id text, p_model text, p_input_tokens bigint,
  p_output_tokens bigint, p_input_price bigint, p_output_price bigint, p_created_at timestamptz
) RETURNS bytea
  LANGUAGE plpgsql STABLE PARALLEL SAFE
AS $$
DECLARE
  v_created constant text := (extract(epoch FROM p_created_at) * 1000000)::bigint;
BEGIN
  RETURN sha256(p_before || convert_to(concat(
    length(p_version::text), ':', p_version, octet_length(p_account_id), ':', p_account_id, length(p_seq::text), ':', p_seq, octet_length(p_id), ':', p_id,
    length(p_month::text), ':', p_month, octet_length(p_kind), ':', p_kind, length(p_amount_micros::text), ':', p_amount_micros,
    length(p_balance_after_micros::text), ':', p_balance_after_micros, octet_length(p_reason), ':', p_reason,
    octet_length(p_request_id), ':', p_request_id, octet_length(p_key_id), ':', p_key_id,
    octet_length(p_model), ':', p_model, length(p_input_tokens::text), ':', p_input_tokens,
    length(p_output_tokens::text), ':', p_output_tokens, length(p_input_price::text), ':', p_input_price,
    length(p_output_price::text), ':', p_output_price, length(v_created), ':', v_created), 'UTF8'));
END
$$;
