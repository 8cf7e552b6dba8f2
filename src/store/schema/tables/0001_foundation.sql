-- Accounts, plans, keys, rate windows, holds and the ledger.
--
-- Every account belongs to a lane. The lane is the first column of every primary key: it is the unit of locking and of
-- distribution. The ids and keys of an account contain its lane, so each of them determines where its rows are.
--
-- The server runs as vx_app, which may execute the functions in schema/functions and nothing else. No role that it can
-- assume may update or delete a ledger row.

-- The lane of an id: its last two characters, ten bits in the base 32 of TypeIDs. Any other text gives some lane.
CREATE FUNCTION lane_of(p_id text) RETURNS smallint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ((((strpos('0123456789abcdefghjkmnpqrstvwxyz', left(right(p_id, 2), 1)) - 1) << 5)
    | (strpos('0123456789abcdefghjkmnpqrstvwxyz', right(p_id, 1)) - 1)) & 1023)::smallint;

-- One row per lane. Statements that change money or count keys lock the rows of their lanes, in ascending order.
CREATE TABLE lanes (
  lane smallint PRIMARY KEY,
  -- Increases with each change of ownership.
  epoch bigint NOT NULL DEFAULT 1,
  is_owned boolean NOT NULL DEFAULT true,
  CONSTRAINT lane_in_range CHECK (lane BETWEEN 0 AND 1023)
);
INSERT INTO lanes SELECT generate_series(0, 1023);

CREATE TABLE plans (
  name text PRIMARY KEY,
  rpm integer NOT NULL,
  -- Active keys of one account on the plan.
  max_active_keys integer NOT NULL,
  -- Keys that an account creates with a key on the plan.
  max_keys_created_per_hour integer NOT NULL,
  CONSTRAINT plan_limits_positive CHECK (rpm > 0 AND max_active_keys > 0 AND max_keys_created_per_hour > 0)
);
INSERT INTO plans VALUES ('free', 20, 2, 20), ('pro', 600, 20, 200), ('scale', 6000, 100, 1000);

CREATE TABLE accounts (
  lane smallint NOT NULL,
  id text NOT NULL,
  name text NOT NULL,
  plan text NOT NULL REFERENCES plans,
  balance_micros bigint NOT NULL DEFAULT 0,
  held_micros bigint NOT NULL DEFAULT 0,
  last_seq bigint NOT NULL DEFAULT 0,
  last_hash bytea NOT NULL DEFAULT '\x',
  created_at timestamptz NOT NULL,
  PRIMARY KEY (lane, id),
  -- create_account checks that the lane is that of the id: a constraint would be checked again on each update.
  CONSTRAINT balance_covers_holds CHECK (0 <= held_micros AND held_micros <= balance_micros),
  -- Below 2^53, so that every JSON reader gets the exact number.
  CONSTRAINT balance_in_range CHECK (balance_micros <= 9000000000000000)
) WITH (fillfactor = 70);
CREATE INDEX accounts_by_id ON accounts (id);

CREATE TABLE keys (
  lane smallint NOT NULL,
  -- SHA-256 of the full key.
  fingerprint bytea NOT NULL,
  id text NOT NULL,
  account_id text NOT NULL,
  name text NOT NULL,
  plan text NOT NULL REFERENCES plans,
  scopes smallint NOT NULL,
  rate_limit_rpm integer,
  -- Only an operator may give a key a higher limit than its plan.
  may_exceed_plan boolean NOT NULL DEFAULT false,
  visible_start text NOT NULL,
  visible_end text NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  revoked_at timestamptz,
  PRIMARY KEY (lane, fingerprint),
  UNIQUE (lane, id),
  FOREIGN KEY (lane, account_id) REFERENCES accounts (lane, id),
  CONSTRAINT fingerprint_is_sha256 CHECK (length(fingerprint) = 32),
  CONSTRAINT lane_follows_id CHECK (lane = lane_of(id)),
  CONSTRAINT only_four_characters_visible CHECK (length(visible_start) = 4 AND length(visible_end) = 4),
  CONSTRAINT scopes_known CHECK (scopes BETWEEN 1 AND 7),
  CONSTRAINT key_limit_positive CHECK (rate_limit_rpm > 0),
  CONSTRAINT only_a_limit_exceeds CHECK (rate_limit_rpm IS NOT NULL OR NOT may_exceed_plan)
);
CREATE INDEX keys_by_account ON keys (lane, account_id, id);
-- Counts active keys without reading revoked and expired ones.
CREATE INDEX keys_not_revoked ON keys (lane, account_id, plan, coalesce(expires_at, 'infinity'))
  WHERE revoked_at IS NULL;
CREATE INDEX keys_by_revocation ON keys (revoked_at) WHERE revoked_at IS NOT NULL;

-- A key as list and get return it.
CREATE TYPE key_view AS (
  id text, account_id text, name text, plan text, scopes smallint, state text, rpm integer, visible_start text,
  visible_end text, created_at timestamptz, revoked_at timestamptz, expires_at timestamptz,
  last_used_at timestamptz
);

-- The number of keys that an account created with its own keys, in the last hour in which it created any.
CREATE TABLE key_creations (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  -- Hours since January 1970.
  hour integer NOT NULL,
  created integer NOT NULL,
  PRIMARY KEY (lane, account_id)
);

-- One row per key: the minute it was last used in, and how many calls were admitted in that minute.
CREATE TABLE windows (
  lane smallint NOT NULL,
  fingerprint bytea NOT NULL,
  minute integer NOT NULL,
  used integer NOT NULL,
  -- How many calls of the last batch were admitted, and the limit that applied.
  granted integer NOT NULL,
  rpm integer NOT NULL,
  last_used_at timestamptz NOT NULL,
  PRIMARY KEY (lane, fingerprint)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- The prices of each model, in micros: tokens per million, images and requests per unit. Rows are appended when a server
-- loads prices that differ from the latest ones, and never change.
CREATE TABLE price_versions (
  model text NOT NULL,
  -- Versions of a model start at 1 and have no gaps.
  version integer NOT NULL,
  input bigint NOT NULL,
  cached_input bigint NOT NULL,
  cache_write bigint NOT NULL,
  output bigint NOT NULL,
  reasoning bigint NOT NULL,
  image bigint NOT NULL,
  request bigint NOT NULL,
  effective_from timestamptz NOT NULL,
  -- Covers the row and the version before: see price_hash.
  hash bytea NOT NULL,
  PRIMARY KEY (model, version),
  CONSTRAINT prices_not_negative
    CHECK (least(input, cached_input, cache_write, output, reasoning, image, request) >= 0)
);

-- A domain, because PostgreSQL parses and plans each CHECK of a table again for each statement that writes it.
CREATE DOMAIN usage_count AS integer CONSTRAINT usage_not_negative CHECK (VALUE >= 0);

CREATE TYPE entry_kind AS ENUM ('generation', 'credit', 'adjustment');

-- The month is that of the UUIDv7 time in the id. It is part of both keys, so that the table can be partitioned by
-- month: an id is unique within its month, and looking up an id reads one partition.
-- Rows are appended only by functions that hold the account's row, so no foreign key checks it again.
CREATE TABLE ledger (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  seq bigint NOT NULL,
  -- "led_x" for the generation "gen_x", so a generation has at most one row.
  id text NOT NULL,
  -- Months since January 1970.
  month integer NOT NULL,
  kind entry_kind NOT NULL,
  amount_micros bigint NOT NULL,
  balance_after_micros bigint NOT NULL,
  reason text NOT NULL,
  request_id text NOT NULL,
  key_id text NOT NULL,
  model text NOT NULL,
  -- 0 if the entry is not a generation.
  price_version integer NOT NULL,
  -- Disjoint counts: no token counts for two of them, except that image_tokens are also among the input tokens.
  input usage_count NOT NULL,
  cached_input usage_count NOT NULL,
  cache_write usage_count NOT NULL,
  output usage_count NOT NULL,
  reasoning usage_count NOT NULL,
  images usage_count NOT NULL,
  image_tokens usage_count NOT NULL,
  -- The caller's end user, as the request names it.
  user_id text NOT NULL,
  -- From the traceparent header of the call.
  trace_id text NOT NULL,
  created_at timestamptz NOT NULL,
  -- Which fields the hash covers, and how they are written: see ledger_hash.
  hash_version smallint NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (lane, account_id, seq, month),
  CONSTRAINT ledger_entry_once UNIQUE (lane, id, month),
  CONSTRAINT entry_has_reason CHECK (reason <> '')
);

-- The entries with the prices of their version.
CREATE VIEW priced_ledger AS
  SELECT l.*, p.input AS input_price, p.cached_input AS cached_input_price, p.cache_write AS cache_write_price,
         p.output AS output_price, p.reasoning AS reasoning_price, p.image AS image_price, p.request AS request_price
  FROM ledger l LEFT JOIN price_versions p ON p.model = l.model AND p.version = l.price_version;

-- The idempotency keys of credits and adjustments, and the ledger row each of them wrote.
CREATE TABLE movement_keys (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  idempotency_key text NOT NULL,
  seq bigint NOT NULL,
  month integer NOT NULL,
  PRIMARY KEY (lane, account_id, idempotency_key)
);

-- The running servers, by the database's clock.
CREATE TABLE servers (
  id text PRIMARY KEY,
  -- Start of the current series of heartbeats without a gap. A server with a recent gap does not remove others.
  present_since timestamptz NOT NULL,
  seen_at timestamptz NOT NULL
);

CREATE TABLE holds (
  lane smallint NOT NULL,
  -- The id of the generation: "gen_…".
  id text NOT NULL,
  account_id text NOT NULL,
  server_id text NOT NULL,
  amount_micros bigint NOT NULL,
  idempotency_key text,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (lane, id),
  CONSTRAINT hold_not_negative CHECK (amount_micros >= 0)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- The items of a batch. Servers send arrays of them, with the fields in this order: see src/store/batch-items.ts.
CREATE TYPE admit_item AS (lane smallint, fingerprint bytea, generate integer, read integer, keys integer);
CREATE TYPE hold_item AS (
  lane smallint, account_id text, hold_id text, key_id text, amount bigint, seconds integer, idempotency_key text,
  digest text
);
CREATE TYPE entry_item AS (
  lane smallint, account_id text, hold_id text, id text, month integer, kind entry_kind, amount bigint, reason text,
  request_id text, key_id text, model text, price_version integer, input integer, cached_input integer,
  cache_write integer, output integer, reasoning integer, images integer, image_tokens integer, user_id text,
  trace_id text, answer text
);
-- The prices of a model as a server loads them.
CREATE TYPE price_item AS (
  model text, input bigint, cached_input bigint, cache_write bigint, output bigint, reasoning bigint, image bigint,
  request bigint
);
-- The result of one item. n is its position among the items of its kind.
CREATE TYPE item_result AS (
  kind text, n integer, outcome text, balance_micros bigint, held_micros bigint, amount_micros bigint,
  clock timestamptz
);
-- New values of an account whose row was read at this place under the lock of its lane.
CREATE TYPE held_change AS (place tid, held_micros bigint);
CREATE TYPE account_change AS (
  place tid, held_micros bigint, balance_micros bigint, last_seq bigint, last_hash bytea
);

-- One row per idempotency key, for 24 hours. The answer is null while the call runs.
CREATE TABLE answers (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  idempotency_key text NOT NULL,
  -- Identifies the payload: another payload under the same key is refused.
  digest text NOT NULL,
  hold_id text NOT NULL,
  answer text,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (lane, account_id, idempotency_key)
);
CREATE INDEX answers_by_age ON answers (lane, created_at);
