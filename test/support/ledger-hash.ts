/** The hash of each row of `vx.ledger l`, recomputed over the window `c` of its account. */
export const EXPECTED_HASH = `vx.ledger_hash(lag(l.hash, 1, '\\x'::bytea) OVER c, l)`;
