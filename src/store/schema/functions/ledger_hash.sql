-- The hash of a ledger row: sha256(hash of the row before ‖ fields). Numbers are separated, and each text follows its length,
-- so two different rows never give the same bytes. The version comes first; this is the form of version 1.
-- In SQL, so that PostgreSQL inlines it: a call for each row of a batch is slower.
CREATE OR REPLACE FUNCTION ledger_hash(p_before bytea, p_row ledger) RETURNS bytea
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN sha256(p_before || convert_to(concat_ws(':', p_row.hash_version, p_row.seq, p_row.month, p_row.kind,
    p_row.amount_micros, p_row.balance_after_micros, p_row.price_version, p_row.input, p_row.cached_input,
    p_row.cache_write, p_row.output, p_row.reasoning, p_row.images, p_row.image_tokens,
    (extract(epoch FROM p_row.created_at) * 1000000)::bigint, octet_length(p_row.account_id), p_row.account_id,
    octet_length(p_row.id), p_row.id, octet_length(p_row.reason), p_row.reason, octet_length(p_row.request_id),
    p_row.request_id, octet_length(p_row.key_id), p_row.key_id, octet_length(p_row.model), p_row.model,
    octet_length(p_row.user_id), p_row.user_id, octet_length(p_row.trace_id), p_row.trace_id), 'UTF8'));
