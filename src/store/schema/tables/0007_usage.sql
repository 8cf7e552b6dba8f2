-- Sums of the ledger for reports. Each settlement adds to them in its transaction, and `vx audit` compares them with the
-- ledger.
--
-- A quarter of an hour is the longest period that days of all time zones consist of. The price version is part of the
-- key, so that exports can split the cost of a row into its meters.

-- No settlement runs until the functions that write the sums are applied, in the same transaction.
LOCK TABLE lanes IN EXCLUSIVE MODE;

CREATE TABLE usage_quarters (
  lane smallint NOT NULL,
  account_id text NOT NULL,
  -- Quarters of an hour since 1970.
  quarter integer NOT NULL,
  -- Servers compare these texts too, so their order must not depend on the locale of the database.
  key_id text COLLATE "C" NOT NULL,
  model text COLLATE "C" NOT NULL,
  -- The end user, "(other)" for users above the daily maximum, or empty.
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
  PRIMARY KEY (lane, account_id, quarter, key_id, model, user_id, price_version)
) WITH (fillfactor = 80);

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

-- The entries written so far. The first 1,000 users of a day keep their names, as in name_users.
WITH entries AS MATERIALIZED (
  SELECT l.*, floor(extract(epoch FROM l.created_at) / 900)::integer AS quarter,
         floor(extract(epoch FROM l.created_at) / 86400)::integer AS day
  FROM ledger l WHERE l.kind = 'generation'
), users AS MATERIALIZED (
  SELECT e.lane, e.account_id, e.day, e.user_id,
         row_number() OVER (PARTITION BY e.lane, e.account_id, e.day ORDER BY min(e.seq)) AS number
  FROM entries e WHERE e.user_id <> '' GROUP BY e.lane, e.account_id, e.day, e.user_id
), current_users AS (
  INSERT INTO usage_users
  SELECT u.lane, u.account_id, u.day, u.user_id FROM users u
  WHERE u.number <= 1000 AND u.day = floor(extract(epoch FROM clock_timestamp()) / 86400)::integer
  RETURNING *
), counted AS (
  INSERT INTO usage_user_counts
  SELECT c.lane, c.account_id, c.day, count(*)::integer FROM current_users c GROUP BY c.lane, c.account_id, c.day
)
INSERT INTO usage_quarters
SELECT e.lane, e.account_id, e.quarter, e.key_id, e.model,
       CASE WHEN u.number > 1000 THEN '(other)' ELSE e.user_id END, e.price_version, count(*), sum(e.input),
       sum(e.cached_input), sum(e.cache_write), sum(e.output), sum(e.reasoning), sum(e.images), sum(e.image_tokens),
       -sum(e.amount_micros)
FROM entries e
LEFT JOIN users u ON u.lane = e.lane AND u.account_id = e.account_id AND u.day = e.day AND u.user_id = e.user_id
GROUP BY 1, 2, 3, 4, 5, 6, 7;
