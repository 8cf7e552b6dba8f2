-- Credits and adjustments are few among the generations. A settlement adds no row to this index.
CREATE INDEX ledger_movements ON ledger (lane, account_id, seq) WHERE kind <> 'generation';
