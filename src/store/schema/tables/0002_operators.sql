-- Operators and the fingerprints of their tokens. Like plans, they belong to no account and to no lane.

-- From the fewest rights to the most.
CREATE TYPE operator_role AS ENUM ('viewer', 'support', 'finance', 'admin');

CREATE TABLE operators (
  id text PRIMARY KEY,
  name text NOT NULL,
  role operator_role NOT NULL,
  -- SHA-256 of the token.
  fingerprint bytea NOT NULL UNIQUE,
  created_at timestamptz NOT NULL,
  revoked_at timestamptz,
  -- To the minute.
  last_used_at timestamptz,
  CONSTRAINT operator_fingerprint_is_sha256 CHECK (length(fingerprint) = 32)
);
CREATE UNIQUE INDEX active_operators_by_name ON operators (name) WHERE revoked_at IS NULL;

-- An operator as list returns it.
CREATE TYPE operator_view AS (
  id text, name text, role operator_role, state text, created_at timestamptz, revoked_at timestamptz,
  last_used_at timestamptz
);
