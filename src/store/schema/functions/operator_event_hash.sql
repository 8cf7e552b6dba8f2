-- The hash of an event: sha256(hash of the previous event ‖ fields). Each text follows its length, so two different events
-- never give the same bytes.
CREATE OR REPLACE FUNCTION operator_event_hash(p_before bytea, p_row operator_events) RETURNS bytea
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN sha256(p_before || convert_to(concat_ws(':', p_row.lane, p_row.seq,
    (extract(epoch FROM p_row.created_at) * 1000000)::bigint, octet_length(p_row.actor_id), p_row.actor_id,
    octet_length(p_row.actor_name), p_row.actor_name, octet_length(p_row.method), p_row.method,
    octet_length(p_row.target), p_row.target, octet_length(p_row.account_id), p_row.account_id,
    octet_length(p_row.reason), p_row.reason, octet_length(p_row.outcome), p_row.outcome,
    octet_length(p_row.details::text), p_row.details::text, octet_length(p_row.request_id), p_row.request_id), 'UTF8'));
