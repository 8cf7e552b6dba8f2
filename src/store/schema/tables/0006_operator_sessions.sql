-- Sessions of the console, and the identities of operators at an OpenID Connect provider.

ALTER TABLE operators
  -- The address with which an identity is bound at its first sign-in; empty if the operator uses only the token.
  ADD COLUMN email text NOT NULL DEFAULT '',
  -- The bound identity. NULL before the first sign-in.
  ADD COLUMN issuer text,
  ADD COLUMN subject text,
  ADD CONSTRAINT operator_identity_is_whole CHECK ((issuer IS NULL) = (subject IS NULL));
-- "C" changes only the case of ASCII letters: no other letter becomes one of the address.
CREATE UNIQUE INDEX active_operators_by_email ON operators (lower(email COLLATE "C"))
  WHERE revoked_at IS NULL AND email <> '';
CREATE UNIQUE INDEX active_operators_by_identity ON operators (issuer, subject) WHERE revoked_at IS NULL;

ALTER TYPE operator_view ADD ATTRIBUTE email text, ADD ATTRIBUTE identity_bound boolean;

CREATE TABLE operator_sessions (
  -- SHA-256 of the cookie.
  fingerprint bytea PRIMARY KEY,
  operator_id text NOT NULL REFERENCES operators (id),
  created_at timestamptz NOT NULL,
  -- To the minute.
  used_at timestamptz NOT NULL,
  CONSTRAINT session_fingerprint_is_sha256 CHECK (length(fingerprint) = 32)
);
CREATE INDEX operator_sessions_by_operator ON operator_sessions (operator_id, created_at);
