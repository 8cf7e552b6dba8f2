-- Filtered ledger pages read only entries of the key. Credits and adjustments have ledger_movements; models are few, so
-- that most entries match.
CREATE INDEX ledger_by_key ON ledger (lane, account_id, key_id, seq) WHERE kind = 'generation';
