-- What operators note about accounts, and suspension.

-- Apart from the accounts, because each settlement writes a new version of the account's row.
CREATE TABLE account_profiles (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  -- The id of the account in the operator's own systems.
  external_id text UNIQUE,
  email text NOT NULL DEFAULT '',
  notes text NOT NULL DEFAULT '',
  PRIMARY KEY (lane, account_id),
  FOREIGN KEY (lane, account_id) REFERENCES accounts (lane, id)
);

-- Admission reads it with the balance. The reason is in the operator log.
ALTER TABLE accounts ADD COLUMN suspended_at timestamptz;
CREATE INDEX accounts_by_name ON accounts (name);

-- An account as get and list return it.
CREATE VIEW account_views AS
  SELECT a.lane, a.id, a.name, a.plan, a.balance_micros, a.held_micros, a.created_at, a.suspended_at,
         coalesce(p.external_id, '') AS external_id, coalesce(p.email, '') AS email, coalesce(p.notes, '') AS notes
  FROM accounts a LEFT JOIN account_profiles p ON p.lane = a.lane AND p.account_id = a.id;
