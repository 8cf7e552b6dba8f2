-- No release has this file yet, so it may be edited. `vx migrate` then refuses databases that an earlier text of it created: remove
-- their data folder. A file that a release has is never edited; changes go into a file with the next number.
--
-- Every account belongs to a lane. The lane is the first column of every primary key: it is the unit of locking and of
-- distribution. The ids and keys of an account contain its lane, so each of them determines where its rows are.
--
-- A comment ON a type or a view is for gen/sql/calls.ts: see tools/sql/catalogue.ts.
--
-- The server runs as vx_app, which may execute the functions of the features and nothing else. No role that it can
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
-- Lanes that another cell owns: see docs/decisions/0022-cells.md. Empty in a cell that owns all lanes, so that admission checks the
-- lanes of a batch without reading them.
CREATE INDEX lanes_elsewhere ON lanes (lane) WHERE NOT is_owned;

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
  -- Admission reads it with the balance. The reason is in the operator log.
  suspended_at timestamptz,
  -- The time of the last entry or hold. The next one is not earlier, even if the clock was set back, so that the window of
  -- each entry follows from the ledger.
  last_at timestamptz NOT NULL DEFAULT '-infinity',
  -- Whether the account has limits of its own, and whether any of its keys has: see set_limits.
  is_limited boolean NOT NULL DEFAULT false,
  has_limited_keys boolean NOT NULL DEFAULT false,
  -- Increases with each change of these limits: see limit_counters.
  limits_version bigint NOT NULL DEFAULT 0,
  -- A charge that takes the balance below it writes the event balance.low. NULL for none.
  low_balance_micros bigint,
  -- What payments that were reversed after their credit was spent still cost the account: see take_owed.
  owed_micros bigint NOT NULL DEFAULT 0,
  -- The last version of its own prices; 0 without any: see account_prices.
  price_list_version integer NOT NULL DEFAULT 0,
  -- A charge or a refused call that finds less starts an automatic top-up: see auto_topups. NULL while none can start.
  auto_topup_below_micros bigint,
  -- The earliest expiry of the grants with rest_micros; 'infinity' if none of them expires. NULL without one: such accounts need no look-up.
  grants_expire_at timestamptz,
  -- What charges have taken since the rests of the grants were last written: see grant_rests.
  grants_spent_micros bigint NOT NULL DEFAULT 0,
  -- For the digests of end users, see end_users. NULL in a closed account.
  user_salt bytea DEFAULT uuid_send(gen_random_uuid()),
  -- A closed account is also suspended, has no key that is not revoked, and never opens again: see close_account.
  closed_at timestamptz,
  PRIMARY KEY (lane, id),
  -- create_account checks that the lane is that of the id: a constraint would be checked again on each update.
  CONSTRAINT balance_covers_holds CHECK (0 <= held_micros AND held_micros <= balance_micros),
  -- Below 2^53, so that every JSON reader gets the exact number.
  CONSTRAINT balance_in_range CHECK (balance_micros <= 9000000000000000),
  CONSTRAINT owed_not_negative CHECK (owed_micros >= 0)
) WITH (fillfactor = 70);
CREATE INDEX accounts_by_id ON accounts (id);
CREATE INDEX accounts_with_grants ON accounts (grants_expire_at) WHERE grants_expire_at IS NOT NULL;
-- Searches by the start of a text read only what matches: an index in the order of bytes has these next to each other.
CREATE INDEX accounts_by_name ON accounts (lower(name) COLLATE "C", id COLLATE "C");
-- Few accounts are suspended or closed.
CREATE INDEX suspended_accounts ON accounts (id COLLATE "C") WHERE suspended_at IS NOT NULL;
CREATE INDEX suspended_accounts_by_name ON accounts (lower(name) COLLATE "C", id COLLATE "C") WHERE suspended_at IS NOT NULL;

-- What operators note about accounts. Apart from the accounts, because each settlement writes a new version of the account's row.
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
CREATE INDEX profiles_by_external_id ON account_profiles (lower(external_id) COLLATE "C", account_id COLLATE "C")
  WHERE external_id IS NOT NULL;
CREATE INDEX profiles_by_email ON account_profiles (lower(email) COLLATE "C", account_id COLLATE "C") WHERE email <> '';

-- The end users that calls of accounts named. All other tables contain only digests of these names: without the rows of an account and
-- its salt, nobody can tell whom a digest stands for.
CREATE TABLE end_users (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  -- See user_digest.
  user_id text COLLATE "C" NOT NULL,
  name text COLLATE "C" NOT NULL,
  PRIMARY KEY (lane, account_id, user_id)
);

-- The day and the month of a time in UTC, since January 1970. The planner inlines it.
CREATE FUNCTION day_and_month(p_at timestamptz) RETURNS TABLE (day integer, month integer)
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT floor(extract(epoch FROM p_at) / 86400)::integer,
         ((extract(year FROM p_at AT TIME ZONE 'UTC') - 1970) * 12 + extract(month FROM p_at AT TIME ZONE 'UTC') - 1)::integer
$$;

-- What operators sort accounts by, as refresh_figures last found it: indexes of the accounts themselves would make each settlement
-- write all indexes.
CREATE TABLE account_figures (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  -- "active", "suspended" or "closed".
  state text NOT NULL,
  balance_micros bigint NOT NULL,
  -- The charges of a day and of its month up to the end of this day, in UTC: days and months since January 1970.
  day integer NOT NULL,
  day_micros bigint NOT NULL,
  month integer NOT NULL,
  month_micros bigint NOT NULL,
  -- The last ledger entry in these figures.
  last_seq bigint NOT NULL,
  PRIMARY KEY (lane, account_id)
) WITH (fillfactor = 80);
CREATE INDEX figures_by_balance ON account_figures (state, balance_micros, account_id COLLATE "C");
CREATE INDEX figures_by_day ON account_figures (state, day, day_micros, account_id COLLATE "C") WHERE day_micros > 0;
CREATE INDEX figures_by_month ON account_figures (state, month, month_micros, account_id COLLATE "C") WHERE month_micros > 0;

-- An account as get and list return it. What it spent is as old as its figures.
CREATE VIEW account_views AS
  SELECT a.lane, a.id, a.name, a.plan, a.balance_micros, a.held_micros, a.created_at, a.suspended_at,
         coalesce(p.external_id, '') AS external_id, coalesce(p.email, '') AS email, coalesce(p.notes, '') AS notes,
         a.low_balance_micros, a.owed_micros, a.closed_at, a.grants_expire_at IS NOT NULL AS has_grants,
         CASE WHEN f.day = t.day THEN f.day_micros ELSE 0 END AS day_micros,
         CASE WHEN f.month = t.month THEN f.month_micros ELSE 0 END AS month_micros
  FROM accounts a
  LEFT JOIN account_profiles p ON p.lane = a.lane AND p.account_id = a.id
  LEFT JOIN account_figures f ON f.lane = a.lane AND f.account_id = a.id
  CROSS JOIN LATERAL day_and_month(now()) t;
COMMENT ON VIEW account_views IS 'null: suspended_at, low_balance_micros, closed_at';
-- An account as lists and searches return it: its place there, whether it matches, and whether an earlier search has found it.
CREATE VIEW found_accounts AS SELECT '' AS term, true AS is_match, false AS was_found, a.* FROM account_views a;
COMMENT ON VIEW found_accounts IS 'null: account_views.*';

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
  -- Whether an operator set the limit: it may exceed the plan's, and only operators raise it.
  may_exceed_plan boolean NOT NULL DEFAULT false,
  visible_start text NOT NULL,
  visible_end text NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  revoked_at timestamptz,
  -- When it last lost scopes; NULL if never.
  scopes_reduced_at timestamptz,
  -- The keys that created it, each by the one before; the first was created by an operator.
  ancestors text[] NOT NULL DEFAULT '{}',
  -- Whether the key or one of its ancestors has limits of its own: see set_limits.
  is_limited boolean NOT NULL DEFAULT false,
  -- The ids of the models that it may use; null for all.
  models text[],
  -- The addresses from which it may be used; null for all.
  allowed_cidrs cidr[],
  -- The days before its expiry of the last event key.expiring; NULL before the first one.
  warned_days smallint,
  -- The member whose playground on the customer page uses the key. Such keys are in no list and no event of customers.
  playground_of text,
  PRIMARY KEY (lane, fingerprint),
  UNIQUE (lane, id),
  FOREIGN KEY (lane, account_id) REFERENCES accounts (lane, id),
  CONSTRAINT fingerprint_is_sha256 CHECK (length(fingerprint) = 32),
  CONSTRAINT lane_follows_id CHECK (lane = lane_of(id)),
  CONSTRAINT only_four_characters_visible CHECK (length(visible_start) = 4 AND length(visible_end) = 4),
  CONSTRAINT scopes_known CHECK (scopes BETWEEN 1 AND 31),
  CONSTRAINT key_limit_positive CHECK (rate_limit_rpm > 0),
  CONSTRAINT only_a_limit_exceeds CHECK (rate_limit_rpm IS NOT NULL OR NOT may_exceed_plan),
  CONSTRAINT at_most_eight_levels CHECK (cardinality(ancestors) < 8)
);
CREATE INDEX keys_by_account ON keys (lane, account_id, id);
-- Counts active keys without reading revoked and expired ones.
CREATE INDEX keys_not_revoked ON keys (lane, account_id, plan, coalesce(expires_at, 'infinity'))
  WHERE revoked_at IS NULL;
CREATE UNIQUE INDEX one_playground_key ON keys (lane, account_id, playground_of) WHERE playground_of IS NOT NULL AND revoked_at IS NULL;
CREATE INDEX keys_by_expiry ON keys (expires_at) WHERE revoked_at IS NULL AND expires_at IS NOT NULL;
CREATE INDEX keys_by_revocation ON keys (revoked_at) WHERE revoked_at IS NOT NULL;
CREATE INDEX keys_by_reduction ON keys (scopes_reduced_at) WHERE scopes_reduced_at IS NOT NULL;
CREATE INDEX accounts_by_suspension ON accounts (suspended_at) WHERE suspended_at IS NOT NULL;
CREATE INDEX keys_by_id ON keys (id COLLATE "C");
CREATE INDEX keys_by_visible_characters ON keys (visible_start, id COLLATE "C");
CREATE INDEX keys_by_name ON keys (lower(name) COLLATE "C", id COLLATE "C");

-- A key as list and get return it.
CREATE TYPE key_view AS (
  id text, account_id text, name text, plan text, scopes smallint, state text, rpm integer, visible_start text,
  visible_end text, created_at timestamptz, revoked_at timestamptz, expires_at timestamptz,
  last_used_at timestamptz, previous_expires_at timestamptz, models text,
  -- JSON: the limits of the key itself.
  limits text,
  allowed_cidrs text
);
COMMENT ON TYPE key_view IS 'null: revoked_at, expires_at, last_used_at, previous_expires_at, models, limits, allowed_cidrs
state: active | revoked | expired';
-- A key as a search returns it: the list in which it was found, its place there, whether it matches, and the name of its account.
CREATE VIEW found_keys AS
  SELECT 0 AS list, '' AS sorted_name, true AS is_match, '' AS account_name, (NULL::key_view).*;
COMMENT ON VIEW found_keys IS 'null: key_view.*';
-- A key as create returns it; without the key if the account has to wait.
CREATE VIEW created_keys AS SELECT 0 AS wait_seconds, 0 AS max_keys_created_per_hour, (NULL::key_view).*;
COMMENT ON VIEW created_keys IS 'null: key_view.*
null: id, account_id, name, scopes, state, rpm, visible_start, visible_end, created_at';

-- The secret that a key had before its last rotation. It works until it expires.
CREATE TABLE previous_secrets (
  lane smallint NOT NULL,
  fingerprint bytea NOT NULL,
  key_id text NOT NULL,
  visible_start text NOT NULL,
  visible_end text NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (lane, fingerprint),
  UNIQUE (lane, key_id),
  FOREIGN KEY (lane, key_id) REFERENCES keys (lane, id)
);

-- What the calls of an owner may use in a window. An owner is an account, a key, or a plan: limits of a plan apply to each of its
-- keys, belong to no lane, and are copied to all cells.
CREATE TABLE limits (
  lane smallint NOT NULL,
  id text NOT NULL,
  -- The id of an account or a key, or the name of a plan.
  owner_id text NOT NULL,
  metric text NOT NULL,
  -- The window. Empty for the metric "concurrent".
  period text NOT NULL,
  amount bigint NOT NULL,
  -- Empty for all models.
  model text NOT NULL,
  -- Whether each end user has the amount of its own.
  per_user boolean NOT NULL,
  -- Replaces the amount until this time.
  temporary_amount bigint,
  temporary_until timestamptz,
  created_at timestamptz NOT NULL,
  -- Whether an operator set it last: then only operators change and remove it.
  is_of_operator boolean NOT NULL,
  PRIMARY KEY (lane, id),
  CONSTRAINT limit_once UNIQUE (lane, owner_id, metric, period, model, per_user),
  CONSTRAINT limit_metric_known CHECK (metric IN ('cost', 'tokens', 'generations', 'concurrent', 'cost_alert')),
  CONSTRAINT limit_period_known CHECK (period IN ('', 'minute', 'hour', 'day', 'week', 'month', 'total')),
  CONSTRAINT only_concurrent_without_period CHECK ((period = '') = (metric = 'concurrent')),
  -- Others would write no events.
  CONSTRAINT alert_has_long_period CHECK (metric <> 'cost_alert' OR period IN ('day', 'week', 'month', 'total')),
  -- Below 2^53, so that every JSON reader gets the exact number.
  CONSTRAINT limit_amount_in_range CHECK (amount BETWEEN 0 AND 9000000000000000),
  CONSTRAINT temporary_amount_raises CHECK (temporary_amount BETWEEN amount AND 9000000000000000),
  CONSTRAINT temporary_amount_ends CHECK ((temporary_amount IS NULL) = (temporary_until IS NULL))
);

-- The definitions of the limits of an account, of a key, or of a key's plan, and what they have counted: each array has an element for
-- each limit.
CREATE TYPE limit_counter AS (
  -- The account or key whose calls are counted.
  subject_id text,
  -- The plan whose limits these are; empty for those of the account or key itself.
  plan text,
  -- The end user whose limits these are: a counter of a user has only limits per user, and those of the empty user count calls without
  -- a user. A digest, or "(other)" for users above the maximum.
  user_id text,
  limit_ids text[], metrics text[], periods text[], models text[], per_users boolean[],
  -- Those that are valid now.
  amounts bigint[],
  -- The end of the window of "spent", which is zero from then on: 'infinity' without one.
  window_ends timestamptz[],
  spent bigint[],
  -- The sum of the open holds that name the limit; it does not restart.
  held bigint[],
  -- Entries before this time are not in "spent" although they are in the window: '-infinity' if there are none. 'infinity' if it
  -- is not known, see count_spent.
  counted_since timestamptz[]
);

-- One row for an account and for a key, one for a key and its plan, and one more for each end user if limits are per user. So a call
-- reads and writes few rows, whatever the number of limits. The counter is one column, because forming a row of many columns for each
-- item of a batch takes much longer.
--
-- The definitions are copies of those in "limits": a row whose version is not that of its account (of the shared data if it counts
-- limits of a plan), or whose time has passed, is written anew before it is used. See align_counters.
CREATE TABLE limit_counters (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  subject_id text NOT NULL,
  plan text NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  -- When the first temporary amount ends.
  valid_until timestamptz NOT NULL,
  -- The end of the last window of a row of a user.
  expires_at timestamptz NOT NULL,
  counter limit_counter NOT NULL,
  -- The entries, by seq, of the time in which the key was on another plan: counters of this plan do not count them. Only in rows without a user.
  uncounted int8multirange NOT NULL DEFAULT '{}',
  PRIMARY KEY (lane, account_id, subject_id, plan, user_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);
-- Other rows are written without changing any index.
CREATE INDEX limit_counters_of_users ON limit_counters (lane, expires_at) WHERE user_id <> '';

-- The number of counters of end users of each account.
CREATE TABLE limit_users (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  counters integer NOT NULL,
  PRIMARY KEY (lane, account_id)
);

-- The account or key, the plan and the user of a row of limit_counters.
CREATE TYPE counter_name AS (subject_id text, plan text, user_id text);

-- What a limit has counted for a user, or for all.
CREATE TYPE spent_sum AS (limit_id text, user_id text, spent bigint);

-- Counters, the places of their rows, and whether all exist and have the definitions that are valid now. NULL if no limit can apply.
CREATE TYPE call_counters AS (places tid[], counters limit_counter[], are_current boolean);

-- What a hold holds of the limits of a row of limit_counters.
CREATE TYPE held_counter AS (subject_id text, plan text, user_id text, limit_ids text[], amounts bigint[]);

-- A limit that applies to a call, with the amount that is valid now. owner_id has the definition, subject_id the counter.
CREATE TYPE applied_limit AS (
  id text, owner_id text, subject_id text, metric text, period text, amount bigint, model text, per_user boolean
);

-- A limit as list returns it, with what is counted for one user. "valid_amount" is the amount that is valid now.
CREATE TYPE limit_view AS (
  id text, owner_id text, subject_id text, metric text, period text, amount bigint, model text, per_user boolean,
  temporary_amount bigint, temporary_until timestamptz, valid_amount bigint, spent bigint, held bigint,
  resets_at timestamptz, counted_since timestamptz, is_of_operator boolean
);
COMMENT ON TYPE limit_view IS 'null: temporary_amount, temporary_until, resets_at, counted_since
metric: cost | tokens | generations | concurrent | cost_alert | requests | active_keys
period: "" | minute | hour | day | week | month | total';

-- The result of a check of all limits of a hold: the counters after the hold, and what it must hold of them. details is JSON: the limit
-- that refuses the hold, what is left, or the state of the minute limits.
CREATE TYPE limit_check AS (
  is_refused boolean, places tid[], counters limit_counter[], held held_counter[], details text
);

-- The plans that have limits, and the version of these limits.
CREATE TYPE plans_with_limits AS (names text[], version bigint);

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
CREATE TABLE key_minutes (
  lane smallint NOT NULL,
  key_id text NOT NULL,
  minute integer NOT NULL,
  used integer NOT NULL,
  -- How many calls of the last batch were admitted, and the limit that applied.
  granted integer NOT NULL,
  rpm integer NOT NULL,
  last_used_at timestamptz NOT NULL,
  PRIMARY KEY (lane, key_id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_cost_delay = 0);

-- Prices in micros: tokens per million, images and requests per unit. They are those of calls with more input tokens than the bound;
-- 0 for those of all other calls.
CREATE DOMAIN price_micros AS bigint CONSTRAINT price_not_negative CHECK (VALUE >= 0);
CREATE TYPE price_rates AS (
  above_input_tokens integer, input price_micros, cached_input price_micros, cache_write price_micros, cache_write_1h price_micros,
  output price_micros, reasoning price_micros, image price_micros, request price_micros
);

-- The prices of each model. Rows are appended when a server loads prices that differ from the latest ones, and never change.
CREATE TABLE price_versions (
  model text NOT NULL,
  -- Versions of a model start at 1 and have no gaps.
  version integer NOT NULL,
  -- In the order of their bounds; the first is 0.
  rates price_rates[] NOT NULL,
  effective_from timestamptz NOT NULL,
  -- Covers the row and the previous version: see price_hash.
  hash bytea NOT NULL,
  PRIMARY KEY (model, version)
);

-- The prices of an account that differ from those of the models. Operators append rows, which never change. For a call, the last row of
-- the model counts, and without one the last row of all models.
CREATE TABLE account_prices (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  -- Versions of an account start at 1 and have no gaps.
  version integer NOT NULL,
  -- Empty for all models.
  model text NOT NULL,
  -- Hundredths of a percent that are taken off each price of the model. A row with neither of the two ends the one before.
  discount integer,
  -- The prices of the model for the account. With NULL, the model's own.
  rates price_rates[],
  effective_from timestamptz NOT NULL,
  -- Covers the row and the previous version: see account_price_hash.
  hash bytea NOT NULL,
  PRIMARY KEY (lane, account_id, version),
  FOREIGN KEY (lane, account_id) REFERENCES accounts (lane, id),
  CONSTRAINT discount_in_range CHECK (discount BETWEEN 0 AND 10000),
  CONSTRAINT discount_or_rates CHECK (num_nonnulls(discount, rates) < 2),
  CONSTRAINT rates_have_model CHECK (rates IS NULL OR model <> '')
);
-- Finds the row that counts at a version.
CREATE INDEX account_prices_by_model ON account_prices (lane, account_id, model, version);

-- A version of an account's prices as lists return it, with its prices as JSON.
CREATE TYPE account_price_view AS (version integer, model text, discount integer, prices text, effective_from timestamptz);
COMMENT ON TYPE account_price_view IS 'null: discount, prices';

-- A price after a discount, rounded up to a micro.
CREATE FUNCTION discounted(p_price bigint, p_discount integer) RETURNS bigint
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN p_discount IS NULL THEN p_price ELSE (p_price * (10000 - p_discount) + 9999) / 10000 END;

-- A domain, because PostgreSQL parses and plans each CHECK of a table again for each statement that writes it.
CREATE DOMAIN usage_count AS integer CONSTRAINT usage_not_negative CHECK (VALUE >= 0);

CREATE TYPE entry_kind AS ENUM ('generation', 'credit', 'topup', 'refund', 'adjustment', 'expiry');

-- Partitioned by month, so that old months can be archived and dropped. The month is that of the UUIDv7 time in the id. It is part of
-- both keys: an id is unique within its month, and looking up an id reads one partition.
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
  -- The digest of the caller's end user, see end_users; empty if the call names none.
  user_id text NOT NULL,
  -- From the traceparent header of the call.
  trace_id text NOT NULL,
  created_at timestamptz NOT NULL,
  -- Which fields the hash covers, and how they are written: see ledger_hash.
  hash_version smallint NOT NULL,
  hash bytea NOT NULL,
  -- The part of cache_write that is kept for an hour.
  cache_write_1h usage_count NOT NULL DEFAULT 0,
  -- The bound of the tier whose prices apply; 0 for the prices without a bound.
  price_tier integer NOT NULL DEFAULT 0,
  -- The version of account_prices that applied; 0 if none did.
  price_list_version integer NOT NULL DEFAULT 0,
  -- The upstream that replied, and the cost of the call there; NULL if the upstream has no cost. Only operators see them.
  upstream text NOT NULL DEFAULT '',
  upstream_cost_micros bigint,
  -- The entry of the generation that an adjustment corrects; empty for others.
  adjusted_id text NOT NULL DEFAULT '',
  PRIMARY KEY (lane, account_id, seq, month),
  CONSTRAINT ledger_entry_once UNIQUE (lane, id, month),
  CONSTRAINT entry_has_reason CHECK (reason <> '')
) PARTITION BY RANGE (month);
-- The other entries are few among the generations. A settlement adds no row to this index.
CREATE INDEX ledger_movements ON ledger (lane, account_id, seq) WHERE kind <> 'generation';
-- Filtered ledger pages read only entries of the key. Models are few, so that most entries match.
CREATE INDEX ledger_by_key ON ledger (lane, account_id, key_id, seq) WHERE kind = 'generation';
-- The partition of the current month and of all earlier ones. create_ledger_partitions creates those of later months.
DO $$
DECLARE
  c_today constant timestamp := clock_timestamp() AT TIME ZONE 'UTC';
BEGIN
  EXECUTE format('CREATE TABLE %I PARTITION OF ledger FOR VALUES FROM (MINVALUE) TO (%s)',
    'ledger_until_' || to_char(c_today, 'YYYY_MM'),
    (extract(year FROM c_today) - 1970) * 12 + extract(month FROM c_today));
END
$$;
-- A write never fails because a partition is missing: rows of months without one are in this table.
CREATE TABLE ledger_other_months PARTITION OF ledger DEFAULT;

-- What corrected the charges of generations: each re-rating and each refund does so once, and refunds never exceed the charge.
CREATE TABLE entry_adjustments (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  -- The entry of the generation.
  entry_id text NOT NULL,
  -- The id of a re-rating, or the idempotency key of a refund.
  cause text NOT NULL,
  -- The entry of the adjustment.
  adjustment_id text NOT NULL,
  month integer NOT NULL,
  amount_micros bigint NOT NULL,
  -- The amount that a refund asked for, 0 for all that was left. NULL for a re-rating.
  refund_micros bigint,
  PRIMARY KEY (lane, account_id, entry_id, cause),
  FOREIGN KEY (lane, account_id) REFERENCES accounts (lane, id)
);

-- The entries with the prices that applied, and the end users by name, or by digest after their erasure.
CREATE VIEW priced_ledger AS
  SELECT l.*, discounted(r.input, a.discount) AS input_price, discounted(r.cached_input, a.discount) AS cached_input_price,
         discounted(r.cache_write, a.discount) AS cache_write_price, discounted(r.cache_write_1h, a.discount) AS cache_write_1h_price,
         discounted(r.output, a.discount) AS output_price, discounted(r.reasoning, a.discount) AS reasoning_price,
         discounted(r.image, a.discount) AS image_price, discounted(r.request, a.discount) AS request_price,
         CASE l.user_id WHEN '' THEN '' ELSE coalesce((SELECT n.name FROM end_users n
           WHERE n.lane = l.lane AND n.account_id = l.account_id AND n.user_id = l.user_id), l.user_id) END AS user_name
  FROM ledger l
  LEFT JOIN price_versions p ON p.model = l.model AND p.version = l.price_version
  LEFT JOIN account_prices a ON a.lane = l.lane AND a.account_id = l.account_id AND a.version = l.price_list_version
  LEFT JOIN LATERAL unnest(coalesce(a.rates, p.rates)) r ON r.above_input_tokens = l.price_tier;
COMMENT ON VIEW priced_ledger IS 'null: input_price, cached_input_price, cache_write_price, cache_write_1h_price, output_price
null: reasoning_price, image_price, request_price, upstream_cost_micros';

-- The archived partitions. Their entries are in files, and each file has the entries of an account in order, without gaps.
CREATE TABLE ledger_archives (
  -- The last month of the partition, in months since January 1970. The file has the entries that were created until its
  -- end and are in no earlier file.
  month integer PRIMARY KEY,
  file text NOT NULL,
  sha256 bytea NOT NULL,
  entries bigint NOT NULL,
  -- NULL until the entries are removed from the ledger: up to then, the ledger has them, and nothing else reads this row.
  removed_at timestamptz
);

-- The last entry of each account in each archive, with totals since its first entry. The ledger continues there.
CREATE TABLE archived_ledger (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  month integer NOT NULL,
  -- The first quarter of an hour, since 1970, after the archive.
  end_quarter integer NOT NULL,
  seq bigint NOT NULL,
  balance_micros bigint NOT NULL,
  hash bytea NOT NULL,
  -- See usage_fingerprint.
  usage_fingerprint numeric NOT NULL,
  PRIMARY KEY (lane, account_id, month)
);

-- Sums of the ledger for reports. Each settlement adds to them in its transaction, and `vx audit` compares them with the
-- ledger.
--
-- A quarter of an hour is the longest period that days of all time zones consist of. The versions of the prices and the
-- tier are part of the key, so that exports can split the cost of a row into its meters, and so is the upstream.
CREATE TABLE usage_quarters (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  -- Quarters of an hour since 1970.
  quarter integer NOT NULL,
  -- Servers compare these texts too, so their order must not depend on the locale of the database.
  key_id text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  -- The digest of the end user, "(other)" for users above the daily maximum, or empty.
  user_id text COLLATE "C" NOT NULL,
  price_version integer NOT NULL,
  requests bigint NOT NULL,
  input bigint NOT NULL,
  cached_input bigint NOT NULL,
  cache_write bigint NOT NULL,
  output bigint NOT NULL,
  reasoning bigint NOT NULL,
  images bigint NOT NULL,
  image_tokens bigint NOT NULL,
  cost_micros bigint NOT NULL,
  cache_write_1h bigint NOT NULL DEFAULT 0,
  price_tier integer NOT NULL DEFAULT 0,
  price_list_version integer NOT NULL DEFAULT 0,
  upstream text COLLATE "C" NOT NULL DEFAULT '',
  -- The cost at the upstream, and the charges of the requests whose upstream has no cost.
  upstream_cost_micros bigint NOT NULL DEFAULT 0,
  uncosted_micros bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (lane, account_id, quarter, key_id, model, user_id, price_version, price_tier, price_list_version, upstream)
) WITH (fillfactor = 80);

-- A place in the order of the sums of an account.
CREATE TYPE usage_place AS (
  quarter integer, key_id text, model text, user_id text, price_version integer, price_tier integer, price_list_version integer,
  upstream text
);

-- The usage of a group, as reports return it. The first row has no start, and tells where the next statement continues.
CREATE TYPE usage_group AS (
  start integer, account_id text, key_id text, model text, user_name text, upstream text, requests bigint, input bigint,
  cached_input bigint, cache_write bigint, output bigint, reasoning bigint, images bigint, image_tokens bigint,
  cost_micros bigint, upstream_cost_micros bigint, uncosted_micros bigint, through_seq bigint, large_account_id text, next text
);
COMMENT ON TYPE usage_group IS 'null: start, through_seq, large_account_id, next';

-- The prices of a call with this input: those of the highest bound that it exceeds. In SQL, so that PostgreSQL inlines it.
CREATE FUNCTION rates_of(p_rates price_rates[], p_input_tokens integer) RETURNS SETOF price_rates
  LANGUAGE sql IMMUTABLE PARALLEL SAFE ROWS 1
AS $$
  SELECT r.* FROM unnest(p_rates) r WHERE r.above_input_tokens < greatest(p_input_tokens, 1)
  ORDER BY r.above_input_tokens DESC LIMIT 1
$$;

-- The sums with the names of accounts and end users, and with the prices. List prices are those of the model at that time: of the
-- highest tier that each call of a sum has certainly reached, because the tiers of an account's own prices may differ.
CREATE VIEW priced_usage AS
  SELECT u.*, c.name AS account_name, d.discount,
         CASE u.user_id WHEN '' THEN '' ELSE coalesce((SELECT n.name::text FROM end_users n
           WHERE n.lane = u.lane AND n.account_id = u.account_id AND n.user_id = u.user_id), u.user_id) END AS user_name,
         p.input AS input_price, p.cached_input AS cached_input_price, p.cache_write AS cache_write_price,
         p.cache_write_1h AS cache_write_1h_price, p.output AS output_price, p.reasoning AS reasoning_price,
         p.image AS image_price, p.request AS request_price, l.input AS input_list_price, l.cached_input AS cached_input_list_price,
         l.cache_write AS cache_write_list_price, l.cache_write_1h AS cache_write_1h_list_price, l.output AS output_list_price,
         l.reasoning AS reasoning_list_price, l.image AS image_list_price, l.request AS request_list_price
  FROM usage_quarters u
  JOIN accounts c ON c.lane = u.lane AND c.id = u.account_id
  LEFT JOIN price_versions v ON v.model = u.model COLLATE "default" AND v.version = u.price_version
  LEFT JOIN account_prices d ON d.lane = u.lane AND d.account_id = u.account_id AND d.version = u.price_list_version
  LEFT JOIN LATERAL unnest(coalesce(d.rates, v.rates)) p ON p.above_input_tokens = u.price_tier
  LEFT JOIN LATERAL rates_of(v.rates, u.price_tier + 1) l ON true;
COMMENT ON VIEW priced_usage IS 'null: discount, input_price, cached_input_price, cache_write_price, cache_write_1h_price, output_price
null: reasoning_price, image_price, request_price, input_list_price, cached_input_list_price, cache_write_list_price
null: cache_write_1h_list_price, output_list_price, reasoning_list_price, image_list_price, request_list_price';

-- The end users that have rows of their own on the current day, in UTC.
CREATE TABLE usage_users (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  -- Days since 1970.
  day integer NOT NULL,
  user_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (lane, account_id, day, user_id)
);

-- Their number per account.
CREATE TABLE usage_user_counts (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  day integer NOT NULL,
  users integer NOT NULL,
  PRIMARY KEY (lane, account_id)
);

-- The idempotency keys of credits, adjustments and refunds of single charges, and the ledger row each of them wrote. The key of a top-up
-- is the id of its payment.
CREATE TABLE movement_keys (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  idempotency_key text NOT NULL,
  seq bigint NOT NULL,
  month integer NOT NULL,
  PRIMARY KEY (lane, account_id, idempotency_key)
);

-- Credits that expire or are promotional: what is left of them. The rest of the balance is paid and does not expire. Charges take from
-- the grants that expire first. Other debits take paid credit first, then from the grants that expire last. See grant_rests, spend_grants.
CREATE TABLE grants (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  -- 'infinity' if it does not expire.
  expires_at timestamptz NOT NULL,
  -- Of the ledger row.
  seq bigint NOT NULL,
  entry_id text NOT NULL,
  amount_micros bigint NOT NULL,
  -- What was left when it was last written. Charges do not write it: see grant_rests.
  rest_micros bigint NOT NULL,
  is_promotional boolean NOT NULL,
  PRIMARY KEY (lane, account_id, expires_at, seq),
  FOREIGN KEY (lane, account_id) REFERENCES accounts (lane, id),
  CONSTRAINT rest_in_amount CHECK (rest_micros BETWEEN 0 AND amount_micros)
) WITH (fillfactor = 70);

-- Allowed changes: from pending to paid, failed and expired; from failed and expired to paid, because a payment can arrive late; between
-- paid, refunded and disputed. apply_payment makes them.
CREATE TYPE topup_state AS ENUM ('pending', 'paid', 'failed', 'expired', 'refunded', 'disputed');

-- Payments of customers into their accounts.
CREATE TABLE topups (
  lane smallint NOT NULL,
  -- "top_…".
  id text NOT NULL,
  account_id text NOT NULL,
  state topup_state NOT NULL,
  amount_micros bigint NOT NULL,
  -- Three letters in lower case.
  currency text NOT NULL,
  return_url text NOT NULL,
  -- Whether the caller sent no return_url, so that it is that of the server.
  has_default_url boolean NOT NULL DEFAULT false,
  -- NULL if the caller sent none.
  idempotency_key text,
  created_at timestamptz NOT NULL,
  -- Increases with each state of the payment that was read from the provider. A state that was read before another one was applied is
  -- not applied: it may be older.
  version bigint NOT NULL DEFAULT 0,
  -- The page at the provider on which the customer pays. NULL until it exists.
  page_id text,
  page_url text NOT NULL DEFAULT '',
  -- The payment at the provider. NULL until there is one.
  payment_id text,
  paid_at timestamptz,
  -- The ledger entry of the credit. NULL until there is one, and if an operator credited the payment.
  entry_id text,
  receipt_url text NOT NULL DEFAULT '',
  -- What the provider gave back to the customer, and what disputes withdrew; together at most amount_micros is taken from the account.
  refunded_micros bigint NOT NULL DEFAULT 0,
  disputed_micros bigint NOT NULL DEFAULT 0,
  -- What differs between the payment and the top-up, so that it was not credited: empty if nothing does.
  problem text NOT NULL DEFAULT '',
  -- When to look up the payment next. NULL if only events of the provider can change it.
  next_poll_at timestamptz,
  -- Whether the server pays with the stored payment method: see auto_topups. Otherwise the customer pays on the page.
  is_automatic boolean NOT NULL DEFAULT false,
  -- Why an automatic top-up failed, such as "insufficient_funds". Empty otherwise.
  failure text NOT NULL DEFAULT '',
  -- The page of the invoice at the provider. Empty without one.
  invoice_url text NOT NULL DEFAULT '',
  PRIMARY KEY (lane, id),
  CONSTRAINT topup_once UNIQUE (lane, account_id, idempotency_key),
  CONSTRAINT payment_once UNIQUE (lane, payment_id),
  FOREIGN KEY (lane, account_id) REFERENCES accounts (lane, id),
  CONSTRAINT topup_positive CHECK (amount_micros > 0),
  CONSTRAINT paid_has_payment CHECK (paid_at IS NULL OR payment_id IS NOT NULL),
  CONSTRAINT reversals_not_negative CHECK (least(refunded_micros, disputed_micros) >= 0)
);
CREATE INDEX topups_by_account ON topups (lane, account_id, id);
CREATE INDEX topups_by_id ON topups (id COLLATE "C");
CREATE INDEX topups_by_state ON topups (state, id COLLATE "C");
CREATE INDEX topups_with_problem ON topups (id COLLATE "C") WHERE problem <> '';
CREATE INDEX topups_to_poll ON topups (next_poll_at) WHERE next_poll_at IS NOT NULL;
-- One payment at a time: one whose outcome is not known keeps the next from starting.
CREATE UNIQUE INDEX one_automatic_topup ON topups (lane, account_id) WHERE is_automatic AND state = 'pending';
CREATE INDEX automatic_topups ON topups (lane, account_id, created_at) WHERE is_automatic;

-- The automatic top-ups of accounts. A row exists from the first change of its settings on, or from when the provider has a customer.
CREATE TABLE auto_topups (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  is_enabled boolean NOT NULL,
  threshold_micros bigint NOT NULL,
  amount_micros bigint NOT NULL,
  -- What automatic top-ups of a month, in UTC, may add up to: those that are paid or not decided yet.
  monthly_max_micros bigint NOT NULL,
  currency text NOT NULL,
  -- Failed payments in a row; the third one disables.
  failures smallint NOT NULL DEFAULT 0,
  -- Why the last one failed. Empty after a payment.
  last_failure text NOT NULL DEFAULT '',
  -- The customer and the stored payment method at the provider. NULL until they exist.
  customer_id text,
  method_id text,
  -- Describes the method, such as "visa •••• 4242, expires 12/2030".
  method text NOT NULL DEFAULT '',
  -- When the page on which it was stored was created. Pages that are older do not replace it.
  method_page_at timestamptz,
  -- The page on which the customer stores a payment method. NULL without one, or after it was used.
  page_id text,
  page_url text NOT NULL DEFAULT '',
  page_created_at timestamptz,
  -- The end of the month whose maximum did not allow the next one. None starts before it, unless the settings change.
  full_until timestamptz,
  -- When a server looks at the row next: for the page, or because the month is over. NULL for never.
  due_at timestamptz,
  PRIMARY KEY (lane, account_id),
  FOREIGN KEY (lane, account_id) REFERENCES accounts (lane, id),
  CONSTRAINT auto_topup_amounts_positive
    CHECK (NOT is_enabled OR least(threshold_micros, amount_micros, monthly_max_micros - amount_micros + 1) > 0),
  CONSTRAINT method_has_customer CHECK (method_id IS NULL OR customer_id IS NOT NULL)
);
CREATE INDEX auto_topups_due ON auto_topups (due_at) WHERE due_at IS NOT NULL;

-- The settings of an account as get returns them, with the customer and the method at the provider.
CREATE TYPE auto_topup_view AS (
  account_id text, is_enabled boolean, threshold_micros bigint, amount_micros bigint, monthly_max_micros bigint, failures smallint,
  last_failure text, customer_id text, method_id text, method text, page_id text, page_url text, page_created_at timestamptz,
  -- What the monthly maximum counts, and the top-up that is not decided yet; empty without one.
  month_micros bigint, pending_topup_id text
);
COMMENT ON TYPE auto_topup_view IS 'null: customer_id, method_id, page_id, page_created_at';

-- A payment as a server read it from the provider.
CREATE TYPE seen_payment AS (
  -- "open" (also while the payment is processed), "paid", "failed" or "expired".
  status text, page_id text, payment_id text, account_id text, currency text, amount_micros bigint, refunded_micros bigint,
  disputed_micros bigint, receipt_url text,
  -- Why an automatic top-up failed; "stopped" if the server cancelled it. Empty otherwise.
  failure text,
  invoice_url text
);

-- The running servers, by the database's clock.
CREATE TABLE servers (
  id text PRIMARY KEY,
  -- Start of the current series of heartbeats without a gap. A server with a recent gap does not remove others.
  present_since timestamptz NOT NULL,
  seen_at timestamptz NOT NULL,
  -- The names of the cells that the server would use, as JSON.
  cells text NOT NULL DEFAULT '[]'
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
  -- What the hold holds of limits; NULL if none apply.
  counters held_counter[],
  PRIMARY KEY (lane, id),
  CONSTRAINT hold_not_negative CHECK (amount_micros >= 0)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- The items of a batch. Servers send arrays of them, with the fields in this order: see gen/sql/fields.ts.
CREATE TYPE admit_item AS (
  lane smallint, fingerprint bytea, generate integer, read integer, keys integer, webhooks integer, billing integer, any_scope integer,
  -- The address ranges that the server checked the addresses of the calls against, separated by commas; null for none.
  cidrs text
);
-- What admission decides about the calls of a key, and what they need of it.
CREATE TYPE admission AS (
  n integer, state text, scopes smallint, granted integer, used integer, rpm integer, seconds_left integer, key_id text,
  account_id text, key_name text, plan text, visible_start text, visible_end text, balance_micros bigint, models text,
  allowed_cidrs text, current_fingerprint bytea, price_list_version integer
);
COMMENT ON TYPE admission IS 'null: used, models, allowed_cidrs, current_fingerprint
state: active | revoked | expired | suspended | rotated';
-- A key of a batch: how many calls count, whether any uses it, and how many slots they take at most.
CREATE TYPE admitted_key AS (
  n integer, calls integer, is_used boolean, slots integer, lane smallint, state text, scopes smallint, rpm integer, key_id text,
  account_id text, key_name text, plan text, visible_start text, visible_end text, balance_micros bigint, models text,
  allowed_cidrs text, price_list_version integer
);
CREATE TYPE hold_item AS (
  lane smallint, account_id text, generation_id text, key_id text, amount bigint, seconds integer, idempotency_key text,
  digest text, model text, user_id text, tokens bigint,
  -- Of the call: the secret that it came with, the scopes of its key, the address ranges that its address was compared with (see
  -- admit_item), and the version of the account's prices that the amount was computed with.
  fingerprint bytea, scopes smallint, cidrs text, price_list_version integer
);
CREATE TYPE entry_item AS (
  lane smallint, account_id text, generation_id text, id text, month integer, kind entry_kind, amount bigint, reason text,
  request_id text, key_id text, model text, price_version integer, input integer, cached_input integer,
  cache_write integer, output integer, reasoning integer, images integer, image_tokens integer, user_id text,
  trace_id text, answer text, cache_write_1h integer, price_tier integer,
  price_list_version integer, upstream text, upstream_cost bigint, adjusted_id text
);
-- The prices of a model as a server loads them.
CREATE TYPE price_item AS (model text, rates price_rates[]);
-- The result of one item. n is its position among the items of its kind. amount_micros is what an ending charges, what an account owes
-- that cannot hold, and the threshold of its automatic top-up if a hold is too large for the balance. limits is what check_limits returns
-- about a hold, as JSON.
CREATE TYPE item_result AS (
  kind text, n integer, outcome text, balance_micros bigint, held_micros bigint, amount_micros bigint,
  clock timestamptz, limits text
);
COMMENT ON TYPE item_result IS 'null: balance_micros, held_micros, amount_micros, clock, limits
kind: end | hold | late';
CREATE TYPE account_name AS (lane smallint, account_id text);
-- New values of an account whose row was read at this place under the lock of its lane.
CREATE TYPE held_change AS (place tid, held_micros bigint, at timestamptz);
CREATE TYPE account_change AS (
  place tid, held_micros bigint, balance_micros bigint, grants_spent_micros bigint, last_seq bigint, last_hash bytea, at timestamptz
);

-- One row per idempotency key, for 24 hours. The answer is null while the call runs.
CREATE TABLE answers (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  idempotency_key text NOT NULL,
  -- Identifies the payload: another payload under the same key is refused.
  digest text NOT NULL,
  generation_id text NOT NULL,
  answer text,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (lane, account_id, idempotency_key)
);
CREATE INDEX answers_by_age ON answers (lane, created_at);

-- What happened to accounts, for customers and operators. Events are written by write_event, and deleted after VX_EVENTS_DAYS.
CREATE TABLE events (
  lane smallint NOT NULL,
  -- Empty for events about prices, which are in lane 1024.
  account_id text NOT NULL,
  -- Numbers of an account start at 1 and have no gaps.
  seq bigint NOT NULL,
  id text NOT NULL,
  type text NOT NULL,
  -- Later than that of the event before.
  created_at timestamptz NOT NULL,
  data jsonb NOT NULL,
  PRIMARY KEY (lane, account_id, seq),
  UNIQUE (lane, id)
);
CREATE INDEX events_by_type ON events (lane, account_id, type, seq);
CREATE INDEX events_by_time ON events (created_at, id);
CREATE INDEX events_by_type_and_time ON events (type, created_at, id);

-- An event as lists return it, with its time also in microseconds since 1970, and the JSON of its data.
CREATE TYPE event_view AS (
  id text, account_id text, seq bigint, type text, created_at timestamptz, created_micros bigint, data text
);

-- The last event of each account, which may be deleted.
CREATE TABLE event_ends (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  seq bigint NOT NULL,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (lane, account_id)
);

-- Metered calls that ended with an error and have no ledger row, written by record_failures and deleted after VX_FAILURES_DAYS. Each account
-- and minute with such calls also has a row of its own, whose id is lower than those of the calls.
CREATE TABLE failures (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  -- Sorts by time.
  id text NOT NULL,
  created_at timestamptz NOT NULL,
  key_id text NOT NULL DEFAULT '',
  method text NOT NULL DEFAULT '',
  -- Empty if the call was refused before its model was known.
  model text NOT NULL DEFAULT '',
  -- Empty if none received the request.
  upstream text NOT NULL DEFAULT '',
  status smallint NOT NULL DEFAULT 0,
  code text NOT NULL DEFAULT '',
  -- The error that the caller got.
  message text NOT NULL DEFAULT '',
  latency_ms integer NOT NULL DEFAULT 0,
  request_id text NOT NULL DEFAULT '',
  -- Only in the row of a minute: how many of its calls servers sent for storing. NULL in the row of a call.
  received integer,
  -- How many others of the minute servers counted.
  omitted integer NOT NULL DEFAULT 0,
  PRIMARY KEY (lane, account_id, id)
);
CREATE INDEX failures_by_time ON failures (created_at);

-- What record_failures stores: minutes, and the calls in them. minute is the position of the minute; later is the number of calls of the
-- minute after this one.
CREATE TYPE failure_minute AS (lane smallint, account_id text, id text, at_ms bigint, calls integer, omitted integer);
CREATE TYPE failure_item AS (
  minute integer, later integer, id text, at_ms bigint, key_id text, method text, model text, upstream text, status smallint, code text,
  message text, latency_ms integer, request_id text
);
-- A failed call as lists return it, or the number of calls of a minute that are not stored.
CREATE TYPE failure_view AS (
  id text, created_at timestamptz, key_id text, method text, model text, upstream text, status smallint, code text, message text,
  latency_ms integer, request_id text, omitted integer
);

-- Endpoints that receive events: those of an account, and those of operators, which are in lane 1024 without an account, and receive the
-- events of all accounts.
CREATE TYPE webhook_state AS ENUM ('enabled', 'paused', 'disabled');
CREATE TABLE webhooks (
  lane smallint NOT NULL,
  id text NOT NULL,
  account_id text NOT NULL,
  url text NOT NULL,
  description text NOT NULL,
  -- Types of events. Empty for all.
  types text[] NOT NULL,
  -- A paused endpoint receives its events later, a disabled one does not.
  state webhook_state NOT NULL DEFAULT 'enabled',
  -- Why the server disabled it: "gone" or "failing". Empty otherwise.
  disabled_reason text NOT NULL DEFAULT '',
  -- When it was enabled, or got another address: failures before this time do not disable the endpoint.
  enabled_at timestamptz NOT NULL,
  -- How often that happened. An outcome counts only for the revision with which its attempt was claimed.
  revision integer NOT NULL DEFAULT 0,
  secret text NOT NULL,
  -- Separated by spaces. Deliveries are signed with them as well until previous_expires_at.
  previous_secrets text,
  previous_expires_at timestamptz,
  created_at timestamptz NOT NULL,
  PRIMARY KEY (lane, id)
);
CREATE INDEX webhooks_by_account ON webhooks (lane, account_id);

-- A webhook as lists return it. It has its secret only where that is new.
CREATE TYPE webhook_view AS (
  id text, account_id text, url text, description text, types text, state text, disabled_reason text, created_at timestamptz,
  previous_expires_at timestamptz, secret text
);
COMMENT ON TYPE webhook_view IS 'null: previous_expires_at, secret
state: enabled | paused | disabled';

-- The events that webhooks receive, with the last attempt. write_event adds them with the event, and they are deleted with it.
CREATE TYPE delivery_state AS ENUM ('pending', 'delivered', 'failed');
CREATE TABLE deliveries (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  seq bigint NOT NULL,
  webhook_id text NOT NULL,
  event_id text NOT NULL,
  -- Of the event.
  created_at timestamptz NOT NULL,
  state delivery_state NOT NULL DEFAULT 'pending',
  -- Since the event, or since it was last redelivered. Counts, like due_at, only for this revision of the webhook: next_delivery.
  attempts smallint NOT NULL DEFAULT 0,
  revision integer NOT NULL DEFAULT 0,
  -- The first attempt is due at the time of the event, so the first attempts of an account are in the order of its events.
  due_at timestamptz NOT NULL,
  attempted_at timestamptz,
  -- Of the answer. NULL without one.
  status smallint,
  latency_ms integer,
  -- Why the attempt failed. Empty if it did not.
  error text NOT NULL DEFAULT '',
  -- The first 1,000 characters of the answer.
  answer text NOT NULL DEFAULT '',
  PRIMARY KEY (lane, account_id, seq, webhook_id)
);
CREATE INDEX pending_deliveries ON deliveries (lane, webhook_id, due_at) WHERE state = 'pending';
CREATE INDEX deliveries_by_webhook ON deliveries (webhook_id, state, created_at, event_id);

-- The endpoints with deliveries, one row for each lane with events. Servers claim a row, make one attempt, and store its outcome. A
-- transaction locks rows in the order of their keys, and before the deliveries.
CREATE TABLE webhook_queues (
  lane smallint NOT NULL,
  webhook_id text NOT NULL,
  is_of_operators boolean NOT NULL,
  -- When its first pending delivery is due, or earlier.
  due_at timestamptz NOT NULL,
  -- The number of claims, and when the last one ends if its server does not store an outcome.
  claims bigint NOT NULL DEFAULT 0,
  claimed_until timestamptz NOT NULL DEFAULT '-infinity',
  -- The endpoint asked for a pause, the webhook is paused, or another cell owns the lane.
  blocked_until timestamptz NOT NULL DEFAULT '-infinity',
  ready_at timestamptz NOT NULL GENERATED ALWAYS AS (greatest(due_at, claimed_until, blocked_until)) STORED,
  -- Whether an attempt took long in the last ten minutes. Endpoints without an attempt count as slow.
  is_slow boolean NOT NULL DEFAULT true,
  -- The last attempt that took long.
  slow_at timestamptz,
  -- Whether an attempt took five seconds in the last ten minutes, and the last one that did.
  is_hanging boolean NOT NULL DEFAULT false,
  hung_at timestamptz,
  -- The first failure after the last accepted delivery, and after the webhook was enabled.
  failing_since timestamptz,
  accepted_at timestamptz,
  PRIMARY KEY (lane, webhook_id)
);
CREATE INDEX ready_queues ON webhook_queues (is_slow, is_hanging, ready_at) WHERE NOT is_of_operators;
CREATE INDEX ready_queues_of_operators ON webhook_queues (webhook_id, ready_at) WHERE is_of_operators;

-- The outcome of an attempt, as servers store it.
CREATE TYPE delivery_attempt AS (
  lane smallint, webhook_id text, claim bigint, revision integer, account_id text, seq bigint, event_id text, attempt smallint,
  status smallint, latency_ms integer, error text, answer text, retry_ms bigint, pause_ms bigint
);

-- Queues that got deliveries. Without a key, so that transactions that write events do not wait for each other.
CREATE TABLE woken_queues (
  lane smallint NOT NULL,
  webhook_id text NOT NULL
);

-- Operators belong to no account and to no lane, like plans. The roles are in order: each has the rights of the ones before it.
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
  -- The address with which an identity is bound at its first sign-in; empty if the operator uses only the token.
  email text NOT NULL DEFAULT '',
  -- The bound identity at an OpenID Connect provider. NULL before the first sign-in.
  issuer text,
  subject text,
  CONSTRAINT operator_fingerprint_is_sha256 CHECK (length(fingerprint) = 32),
  CONSTRAINT operator_identity_is_whole CHECK ((issuer IS NULL) = (subject IS NULL))
);
CREATE UNIQUE INDEX active_operators_by_name ON operators (name) WHERE revoked_at IS NULL;
-- "C" changes only the case of ASCII letters: no other letter becomes one of the address.
CREATE UNIQUE INDEX active_operators_by_email ON operators (lower(email COLLATE "C"))
  WHERE revoked_at IS NULL AND email <> '';
CREATE UNIQUE INDEX active_operators_by_identity ON operators (issuer, subject) WHERE revoked_at IS NULL;

-- An operator as list returns it.
CREATE TYPE operator_view AS (
  id text, name text, role operator_role, state text, created_at timestamptz, revoked_at timestamptz,
  last_used_at timestamptz, email text, identity_bound boolean
);
COMMENT ON TYPE operator_view IS 'null: revoked_at, last_used_at
state: active | revoked';

-- The sessions of the console.
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

-- People who sign in to the customer page with OpenID Connect. They belong to no lane: this table, their sessions and what they signed up for are
-- in the first cell. What a person may do in an account is in the lane of the account, see members.
CREATE TABLE people (
  id text PRIMARY KEY,
  issuer text NOT NULL,
  subject text NOT NULL,
  -- The address that the provider verified at the last sign-in; empty if it verified none.
  email text NOT NULL,
  created_at timestamptz NOT NULL,
  signed_in_at timestamptz NOT NULL,
  -- The account for which the person signed up. It is chosen before the account is created, so that a repetition creates no second one.
  account_id text,
  CONSTRAINT people_identity_unique UNIQUE (issuer, subject)
);
CREATE INDEX people_by_sign_in ON people (signed_in_at);

-- The accounts to look in for a person. A row can exist without a member, but no member without a row.
CREATE TABLE person_accounts (
  person_id text NOT NULL REFERENCES people ON DELETE CASCADE,
  account_id text NOT NULL,
  -- "sign-up", or an id for each attempt to accept an invitation. What ends one membership leaves the link of the next one.
  link_id text NOT NULL,
  PRIMARY KEY (person_id, account_id, link_id)
);

-- The accounts of people that were closed within 30 days. Their members are erased, so this is how a person learns of it and gets the last
-- statement.
CREATE TABLE closed_accounts (
  person_id text NOT NULL REFERENCES people ON DELETE CASCADE,
  account_id text NOT NULL,
  closed_at timestamptz NOT NULL,
  PRIMARY KEY (person_id, account_id)
);
CREATE INDEX closed_accounts_by_time ON closed_accounts (closed_at);

-- The sessions of the customer page: of a person, or of an operator who views the page of one account.
CREATE TABLE page_sessions (
  -- SHA-256 of the cookie. Before an operator opens the link to the page: of the token in the link.
  fingerprint bytea PRIMARY KEY,
  id text NOT NULL UNIQUE,
  person_id text REFERENCES people ON DELETE CASCADE,
  operator_id text,
  operator_name text NOT NULL DEFAULT '',
  -- The account that the operator views.
  account_id text,
  is_link boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL,
  -- To the minute.
  used_at timestamptz NOT NULL,
  user_agent text NOT NULL,
  address text NOT NULL,
  CONSTRAINT session_fingerprint_is_sha256 CHECK (length(fingerprint) = 32),
  CONSTRAINT session_of_person_or_operator CHECK ((person_id IS NULL) = (operator_id IS NOT NULL AND account_id IS NOT NULL))
);
CREATE INDEX page_sessions_by_person ON page_sessions (person_id, created_at) WHERE person_id IS NOT NULL;
CREATE INDEX page_sessions_by_operator ON page_sessions (operator_id) WHERE operator_id IS NOT NULL;
CREATE INDEX page_sessions_by_use ON page_sessions (used_at);

-- Identities that signed up: digests of issuer and subject, and of the verified mailbox. They stay when the account is closed, so that
-- nobody gets the starting credit again.
CREATE TABLE starting_credits (
  digest bytea PRIMARY KEY,
  -- The first account, which got the credit.
  account_id text NOT NULL,
  -- The sign-ups of 30 days, which are bounded.
  sign_ups timestamptz[] NOT NULL
);

-- Invitations to sign up, which operators create. The others are in the lane of their account, see invitations.
CREATE TABLE sign_up_invitations (
  id text PRIMARY KEY,
  fingerprint bytea NOT NULL,
  email text NOT NULL,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- The person who used it.
  person_id text,
  CONSTRAINT invitation_fingerprint_is_sha256 CHECK (length(fingerprint) = 32)
);

CREATE TYPE member_role AS ENUM ('viewer', 'developer', 'billing', 'owner');

-- Who works with an account on the customer page.
CREATE TABLE members (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  person_id text NOT NULL,
  -- That of the person, at the last sign-in.
  email text NOT NULL,
  role member_role NOT NULL,
  joined_at timestamptz NOT NULL,
  -- The row of person_accounts.
  link_id text NOT NULL,
  PRIMARY KEY (lane, account_id, person_id),
  FOREIGN KEY (lane, account_id) REFERENCES accounts (lane, id)
);

-- Links that make one person a member. A row is deleted when it is used.
CREATE TABLE invitations (
  lane smallint NOT NULL,
  id text NOT NULL,
  account_id text NOT NULL,
  -- SHA-256 of the secret in the link.
  fingerprint bytea NOT NULL,
  role member_role NOT NULL,
  -- If set, only a person with this address can use it.
  email text NOT NULL,
  -- The id of the person or operator.
  created_by text NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (lane, id),
  FOREIGN KEY (lane, account_id) REFERENCES accounts (lane, id),
  CONSTRAINT invitation_fingerprint_is_sha256 CHECK (length(fingerprint) = 32)
);
CREATE INDEX invitations_by_account ON invitations (lane, account_id);

-- The operator log: what operators and members changed, and which changes were refused. Rows are appended in the transaction of the
-- change and never change.
--
-- An event belongs to the lane of the account that it concerns, so that it moves with the account; events about plans and
-- operators belong to no lane and stay in the first cell. Each lane has its own chain of hashes, and so have the events without a lane.
CREATE TABLE operator_events (
  lane smallint NOT NULL,
  seq bigint NOT NULL,
  created_at timestamptz NOT NULL,
  -- The id of the operator or of the member, "break-glass" for the holder of VX_ADMIN_TOKEN, or "server".
  actor_id text NOT NULL,
  -- Empty for a member, whose name is personal data: rows of the log cannot be deleted.
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
  -- Covers the row and the previous one: see operator_event_hash.
  hash bytea NOT NULL,
  PRIMARY KEY (lane, seq)
);
-- Events are rare, so each filter of the list has an index with the order of the list.
CREATE INDEX operator_events_by_time ON operator_events (created_at, lane, seq);
CREATE INDEX operator_events_by_actor ON operator_events (actor_id, created_at, lane, seq);
CREATE INDEX operator_events_by_method ON operator_events (method, created_at, lane, seq);
CREATE INDEX operator_events_by_target ON operator_events (target, created_at, lane, seq);
CREATE INDEX operator_events_by_account ON operator_events (account_id, created_at, lane, seq) WHERE account_id <> '';

-- The end of each chain; 1,024 stands for the events without a lane. Its lock orders the events of a lane. It is the last lock that a
-- transaction takes.
CREATE TABLE operator_chains (
  lane smallint PRIMARY KEY,
  last_seq bigint NOT NULL DEFAULT 0,
  last_hash bytea NOT NULL DEFAULT '\x',
  last_at timestamptz NOT NULL DEFAULT '-infinity'
);
INSERT INTO operator_chains (lane) SELECT lane FROM lanes UNION ALL SELECT 1024;

-- Who makes a change, and what the logs show of it. The server sends it with each change: see src/database/action.ts and credentials.sql.
CREATE TYPE caller AS (
  -- key, member, person (without an account), operator, operator_session, break_glass or server.
  kind text,
  id text,
  -- Empty for a member, whose name is personal data.
  name text,
  -- Of a key or a member.
  account_id text,
  -- Of the secret or the session. NULL if the server keeps the session locked in the first cell until the change is committed.
  fingerprint bytea,
  -- The scopes that the method requires of a key.
  scope smallint,
  -- The role with which a member or an operator was admitted.
  role text,
  -- The scopes that a member's role covers.
  covered_scopes smallint,
  -- Whether the method is allowed while the account is suspended.
  while_suspended boolean,
  -- The address ranges of a key that the server compared with the address of the caller; NULL for none.
  cidrs text,
  method text,
  -- The id or name that the request names.
  target text,
  reason text,
  details json,
  request_id text
);

-- Plans, operators and prices are changed in the first cell and copied to the others. The version increases with each change.
CREATE TABLE shared_data (
  version bigint NOT NULL,
  is_only_row boolean PRIMARY KEY DEFAULT true,
  CONSTRAINT shared_data_is_one_row CHECK (is_only_row)
);
INSERT INTO shared_data VALUES (1);

-- The last complete audit by a server, in the first cell.
CREATE TABLE audit_state (
  -- When a server last began a scheduled audit.
  claimed_at timestamptz NOT NULL DEFAULT '-infinity',
  -- NULL before the first audit.
  started_at timestamptz,
  ended_at timestamptz,
  entries bigint NOT NULL DEFAULT 0,
  findings integer NOT NULL DEFAULT 0,
  is_only_row boolean PRIMARY KEY DEFAULT true,
  CONSTRAINT audit_state_is_one_row CHECK (is_only_row)
);
INSERT INTO audit_state DEFAULT VALUES;

-- What all amounts are in, as an ISO 4217 code. It cannot change once the ledger has a row.
CREATE TABLE currency (
  code text NOT NULL,
  is_only_row boolean PRIMARY KEY DEFAULT true,
  CONSTRAINT currency_is_one_row CHECK (is_only_row)
);
INSERT INTO currency VALUES ('USD');

-- The name of the cell, from its first split on. A promoted standby has the name of the cell that it is a copy of until it claims
-- its lanes, so no server uses it before.
CREATE TABLE cell_name (
  name text NOT NULL,
  is_only_row boolean PRIMARY KEY DEFAULT true,
  CONSTRAINT cell_name_is_one_row CHECK (is_only_row)
);

-- Lanes that move to a promoted standby. begun: nothing has changed. released: the source gave up the lanes and can take them back. confirmed: only the target may claim
-- them. The copy of the row at the target decides whether it may.
CREATE TABLE cell_splits (
  id text PRIMARY KEY,
  target text NOT NULL,
  lanes smallint[] NOT NULL,
  state text NOT NULL,
  changed_at timestamptz NOT NULL,
  -- The timeline of the source when it gave up the lanes. On another one, after a failover, it may lack the confirmation that the
  -- target has.
  timeline text,
  CONSTRAINT split_state_known CHECK (state IN ('begun', 'released', 'confirmed', 'finished', 'returned'))
);
CREATE UNIQUE INDEX one_unfinished_split ON cell_splits ((true)) WHERE state IN ('begun', 'released', 'confirmed');

-- Rows that show whether the database accepts writes, see probe_writes. Each row is alone on its page, so that each write
-- allocates space on the disk.
CREATE TABLE write_probes (
  at timestamptz NOT NULL,
  filler text NOT NULL
) WITH (fillfactor = 10, autovacuum_enabled = false);
-- citus_schema_move copies a table by logical replication, which needs the identity of changed rows. Two probes may have the same time,
-- so there is no key.
ALTER TABLE write_probes REPLICA IDENTITY FULL;

-- Marks of the columns with texts. "personal: erased" is about people, and closing the account erases it; "personal: kept" stays, or has
-- its own time. docs/privacy.md lists both. Ids (id and names with _id) need no mark, and a test fails for any other text without one.
DO $$
DECLARE
  c_marks constant text[] := ARRAY[
    ['personal: erased', 'accounts.name account_profiles.external_id account_profiles.email account_profiles.notes end_users.name
      keys.name keys.allowed_cidrs keys.playground_of members.email invitations.email invitations.created_by
      answers.idempotency_key answers.answer failures.message webhooks.url webhooks.description deliveries.error deliveries.answer
      topups.return_url topups.page_url topups.receipt_url topups.invoice_url topups.idempotency_key
      auto_topups.customer_id auto_topups.method auto_topups.method_id auto_topups.page_url'],
    ['personal: erased, except ids, amounts and times', 'events.data'],
    ['personal: kept', 'ledger.reason movement_keys.idempotency_key operator_events.actor_name operator_events.target
      operator_events.reason operator_events.details operators.name operators.email operators.issuer operators.subject'],
    ['personal: kept as a digest', 'ledger.user_id usage_quarters.user_id usage_users.user_id limit_counters.user_id'],
    ['personal: kept until 30 days after the last sign-in', 'people.email people.issuer people.subject'],
    ['personal: kept until it is used or ends', 'holds.idempotency_key page_sessions.operator_name page_sessions.user_agent page_sessions.address
      sign_up_invitations.email sign_up_invitations.created_by'],
    ['not personal', 'account_figures.state account_prices.model accounts.plan answers.digest auto_topups.currency
      auto_topups.last_failure cell_name.name cell_splits.target cell_splits.state cell_splits.timeline currency.code
      entry_adjustments.cause events.type failures.method failures.model failures.upstream failures.code functions.name
      functions.checksum keys.plan keys.visible_start keys.visible_end keys.ancestors keys.models
      ledger.model ledger.upstream ledger_archives.file limit_counters.plan limits.metric limits.period limits.model
      migrations.name migrations.checksum operator_events.method operator_events.outcome plans.name price_versions.model
      releases.release releases.oldest_release servers.cells topups.currency topups.problem topups.failure usage_quarters.model
      usage_quarters.upstream webhooks.types webhooks.disabled_reason webhooks.secret webhooks.previous_secrets
      write_probes.filler previous_secrets.visible_start previous_secrets.visible_end']
  ];
  v_mark text[];
  v_column text;
BEGIN
  FOREACH v_mark SLICE 1 IN ARRAY c_marks LOOP
    FOREACH v_column IN ARRAY regexp_split_to_array(v_mark[2], '\s+') LOOP
      EXECUTE format('COMMENT ON COLUMN %s IS %L', v_column, v_mark[1]);
    END LOOP;
  END LOOP;
END
$$;
