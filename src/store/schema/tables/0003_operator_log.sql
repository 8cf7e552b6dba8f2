-- The operator log: what operators changed, and which changes were refused. Rows are appended in the transaction of the
-- change and never change.
--
-- An event belongs to the lane of the account that it concerns, so that it moves with the account; events about plans and
-- operators belong to lane 0. Each lane has its own chain of hashes.

CREATE TABLE operator_events (
  lane smallint NOT NULL,
  seq bigint NOT NULL,
  created_at timestamptz NOT NULL,
  -- The id of the operator, "break-glass" for the holder of VX_ADMIN_TOKEN, or "server".
  actor_id text NOT NULL,
  actor_name text NOT NULL,
  -- Such as "CreditAccount".
  method text NOT NULL,
  -- The id of an account, a key or an operator, or the name of a plan.
  target text NOT NULL,
  -- The account that owns the target; empty if no account does.
  account_id text NOT NULL,
  reason text NOT NULL,
  -- "ok", or the reason of the error with which the change was refused.
  outcome text NOT NULL,
  -- What was changed, as an object of texts.
  details json NOT NULL,
  request_id text NOT NULL,
  -- Covers the row and the row before: see operator_event_hash.
  hash bytea NOT NULL,
  PRIMARY KEY (lane, seq)
);
-- Events are rare, so each filter of the list has an index with the order of the list.
CREATE INDEX operator_events_by_time ON operator_events (created_at, lane, seq);
CREATE INDEX operator_events_by_actor ON operator_events (actor_id, created_at, lane, seq);
CREATE INDEX operator_events_by_method ON operator_events (method, created_at, lane, seq);
CREATE INDEX operator_events_by_target ON operator_events (target, created_at, lane, seq);
CREATE INDEX operator_events_by_account ON operator_events (account_id, created_at, lane, seq) WHERE account_id <> '';

-- The end of each chain. Its lock orders the events of a lane. It is the last lock that a transaction takes.
CREATE TABLE operator_chains (
  lane smallint PRIMARY KEY,
  last_seq bigint NOT NULL DEFAULT 0,
  last_hash bytea NOT NULL DEFAULT '\x',
  last_at timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO operator_chains (lane) SELECT lane FROM lanes;

-- An act of an operator. Servers send it as JSON: see src/store/operator-log.ts.
CREATE TYPE operator_act AS (
  actor_id text, actor_name text, method text, target text, reason text, details json, request_id text
);
