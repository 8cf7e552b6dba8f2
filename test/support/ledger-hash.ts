/** The hash of each row of `vx.ledger l`, recomputed over the window `c` of its account. */
export const EXPECTED_HASH = `vx.ledger_hash(lag(l.hash, 1, '\\x'::bytea) OVER c, l.hash_version, l.account_id, l.seq, l.id, l.month, l.kind,
  l.amount_micros,  l.balance_after_micros, l.reason, l.request_id, l.key_id, l.model, l.input_tokens, l.output_tokens,
  l.input_micros_per_million_tokens, l.output_micros_per_million_tokens, l.created_at)`;
