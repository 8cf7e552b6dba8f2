-- The hash of a ledger row: sha256(hash of the row before ‖ fields). Numbers are separated, and each text follows its length,
-- so two different rows never give the same bytes. The version comes first; this is the form of version 1.
-- In SQL, so that PostgreSQL inlines it: a call for each row of a batch is slower.
CREATE OR REPLACE FUNCTION ledger_hash(
  p_before bytea, p_version smallint, p_account_id text, p_seq bigint, p_id text, p_month integer, p_kind entry_kind,
  p_amount_micros bigint, p_balance_after_micros bigint, p_reason text, p_request_id text, p_key_id text, p_model text,
  p_input_tokens bigint, p_output_tokens bigint, p_input_price bigint, p_output_price bigint, p_created_at timestamptz
) RETURNS bytea
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN sha256(p_before || convert_to(concat_ws(':', p_version, p_seq, p_month, p_kind, p_amount_micros,
    p_balance_after_micros, p_input_tokens, p_output_tokens, p_input_price, p_output_price,
    (extract(epoch FROM p_created_at) * 1000000)::bigint, octet_length(p_account_id), p_account_id,
    octet_length(p_id), p_id, octet_length(p_reason), p_reason, octet_length(p_request_id), p_request_id,
    octet_length(p_key_id), p_key_id, octet_length(p_model), p_model), 'UTF8'));
