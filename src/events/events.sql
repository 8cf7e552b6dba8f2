-- Events of accounts: how they are written, listed and deleted.

-- Writes an event and its deliveries in the transaction of its cause. The row of the account's last event orders its events. A
-- transaction locks it after rows of keys and before the chain of the operator log.
CREATE OR REPLACE FUNCTION write_event(p_lane smallint, p_account_id text, p_type text, p_data jsonb) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_end event_ends;
  v_id text;
  v_webhook_ids text[];
BEGIN
  INSERT INTO event_ends AS e (lane, account_id, seq, created_at) VALUES (p_lane, p_account_id, 1, clock_timestamp())
    ON CONFLICT ON CONSTRAINT event_ends_pkey DO UPDATE
      SET seq = e.seq + 1, created_at = greatest(excluded.created_at, e.created_at + interval '1 microsecond')
    RETURNING * INTO v_end;
  INSERT INTO events (lane, account_id, seq, id, type, created_at, data)
    VALUES (p_lane, p_account_id, v_end.seq, event_id(p_lane, v_end.created_at), p_type, v_end.created_at, p_data)
    RETURNING id INTO v_id;
  v_webhook_ids := ARRAY(
    SELECT w.id FROM webhooks w
    WHERE w.lane IN (p_lane, no_lane()) AND w.account_id IN (p_account_id, '') AND w.state <> 'disabled'
      AND (w.types = '{}' OR p_type = ANY (w.types)));
  IF v_webhook_ids <> '{}' THEN
    INSERT INTO deliveries (lane, account_id, seq, webhook_id, event_id, created_at, due_at)
      SELECT p_lane, p_account_id, v_end.seq, w.id, v_id, v_end.created_at, v_end.created_at FROM unnest(v_webhook_ids) w (id);
    INSERT INTO woken_queues (lane, webhook_id) SELECT p_lane, w.id FROM unnest(v_webhook_ids) w (id);
  END IF;
END
$$;

-- A TypeID as servers create them: the time, the version and the variant of a UUIDv7, random bits, and the lane.
CREATE OR REPLACE FUNCTION event_id(p_lane smallint, p_at timestamptz) RETURNS text
  LANGUAGE plpgsql
AS $$
DECLARE
  c_digits constant text := '0123456789abcdefghjkmnpqrstvwxyz';
  v_ms constant bigint := floor(extract(epoch FROM p_at) * 1000);
  -- Random digits: two of the 64 of base64 become one of these 32. The ninth and the eleventh contain the version and variant of the UUID.
  v_random constant text := translate(encode(uuid_send(gen_random_uuid()), 'base64'),
    'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', c_digits || c_digits);
  v_id text := 'evt_';
BEGIN
  FOR i IN REVERSE 9..0 LOOP
    v_id := v_id || substr(c_digits, (v_ms >> 5 * i & 31)::integer + 1, 1);
  END LOOP;
  -- 0111 and a random bit; ten random bits; a random bit, 10 and two random bits; fifty random bits; the lane.
  RETURN v_id || substr('ef', floor(random() * 2)::integer + 1, 1) || left(v_random, 2)
    || substr('89abrstv', floor(random() * 8)::integer + 1, 1) || substr(v_random, 12, 10)
    || substr(c_digits, (p_lane >> 5 & 31) + 1, 1) || substr(c_digits, (p_lane & 31) + 1, 1);
END
$$;

-- The events of an account, of some types (separated by commas) or all: oldest first after p_position, or newest first before it;
-- NULL for all. Plans are made once, possibly while the table is empty: each order has a query that an index answers at every
-- size.
-- null: p_position
CREATE OR REPLACE FUNCTION list_events(
  p_lane smallint, p_account_id text, p_types text, p_position bigint, p_is_newest_first boolean, p_limit integer
) RETURNS SETOF event_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_after constant bigint := coalesce(p_position, 0);
  v_before constant bigint := coalesce(p_position, 9223372036854775807);
BEGIN
  RETURN QUERY
  SELECT e.id, e.account_id, e.seq, e.type, e.created_at, (extract(epoch FROM e.created_at) * 1000000)::bigint, e.data::text
  FROM (
    (SELECT * FROM events i WHERE p_types = '' AND NOT p_is_newest_first
       AND i.lane = p_lane AND i.account_id = p_account_id AND i.seq > v_after
     ORDER BY i.seq LIMIT p_limit)
    UNION ALL
    (SELECT * FROM events i WHERE p_types = '' AND p_is_newest_first
       AND i.lane = p_lane AND i.account_id = p_account_id AND i.seq < v_before
     ORDER BY i.seq DESC LIMIT p_limit)
    UNION ALL
    SELECT o.* FROM unnest(string_to_array(p_types, ',')) t (type) CROSS JOIN LATERAL (
      -- With a range in place of an equal type, only the index of the type has the order.
      SELECT * FROM events i WHERE NOT p_is_newest_first AND i.lane = p_lane AND i.account_id = p_account_id
        AND (i.type, i.seq) > (t.type, v_after) AND (i.type, i.seq) <= (t.type, 9223372036854775807)
      ORDER BY i.type, i.seq LIMIT p_limit) o
    UNION ALL
    SELECT o.* FROM unnest(string_to_array(p_types, ',')) t (type) CROSS JOIN LATERAL (
      SELECT * FROM events i WHERE p_is_newest_first AND i.lane = p_lane AND i.account_id = p_account_id
        AND (i.type, i.seq) < (t.type, v_before) AND (i.type, i.seq) >= (t.type, 0)
      ORDER BY i.type DESC, i.seq DESC LIMIT p_limit) o
  ) e
  ORDER BY CASE WHEN p_is_newest_first THEN -e.seq ELSE e.seq END LIMIT p_limit;
END
$$;

-- The number of the last event that a reader knows. p_after is its id: empty for none, 'now' for all events until now. p_at is
-- the time in the id, and p_days for how long events are kept.
-- null: p_at
CREATE OR REPLACE FUNCTION event_position(p_lane smallint, p_account_id text, p_after text, p_at timestamptz, p_days integer)
  RETURNS bigint
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_seq bigint := 0;
BEGIN
  IF p_after = 'now' THEN
    SELECT e.seq INTO v_seq FROM event_ends e WHERE e.lane = p_lane AND e.account_id = p_account_id;
  ELSIF p_after <> '' THEN
    SELECT e.seq INTO v_seq FROM events e WHERE e.lane = p_lane AND e.id = p_after AND e.account_id = p_account_id;
    IF NOT FOUND AND p_at < clock_timestamp() - make_interval(days => p_days) THEN
      PERFORM refuse('cursor_expired');
    ELSIF NOT FOUND THEN
      PERFORM refuse('invalid_argument', 'is not the id of an event of this account', '{"field":"after"}');
    END IF;
  END IF;
  RETURN coalesce(v_seq, 0);
END
$$;

-- The events of all accounts before the event at the given place, newest first; an empty p_before_id for the last events.
CREATE OR REPLACE FUNCTION list_all_events(p_types text, p_before_micros bigint, p_before_id text, p_limit integer)
  RETURNS SETOF event_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_before constant timestamptz := CASE p_before_id WHEN '' THEN 'infinity'
    ELSE timestamptz 'epoch' + p_before_micros * interval '1 microsecond' END;
BEGIN
  IF p_types = '' THEN
    RETURN QUERY SELECT e.id, e.account_id, e.seq, e.type, e.created_at,
        (extract(epoch FROM e.created_at) * 1000000)::bigint, e.data::text FROM events e
      WHERE (e.created_at, e.id) < (v_before, p_before_id) ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit;
  ELSE
    RETURN QUERY SELECT e.id, e.account_id, e.seq, e.type, e.created_at,
        (extract(epoch FROM e.created_at) * 1000000)::bigint, e.data::text
      FROM unnest(string_to_array(p_types, ',')) t (type) CROSS JOIN LATERAL (
        -- See list_events.
        SELECT * FROM events i
        WHERE (i.type, i.created_at, i.id) < (t.type, v_before, p_before_id) AND (i.type, i.created_at) >= (t.type, '-infinity')
        ORDER BY i.type DESC, i.created_at DESC, i.id DESC LIMIT p_limit) e
      ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit;
  END IF;
END
$$;

-- What changed for the watchers of events: those whose account has events after p_seqs, and those whose key was revoked, has
-- expired or may no longer read. n is the position of the watcher in the lists.
-- null: seq, ended
CREATE OR REPLACE FUNCTION watched_accounts(
  p_lanes smallint[], p_account_ids text[], p_seqs bigint[], p_key_ids text[]
)
  RETURNS TABLE (n bigint, seq bigint, ended text)
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
BEGIN
  RETURN QUERY
  SELECT w.n, e.seq, CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked_api_key' WHEN k.has_ended THEN 'expired_api_key'
      WHEN NOT k.may_read THEN 'insufficient_scope' END
  FROM unnest(p_lanes, p_account_ids, p_seqs, p_key_ids) WITH ORDINALITY AS w (lane, account_id, seq, key_id, n)
  LEFT JOIN LATERAL (SELECT i.seq FROM event_ends i
    WHERE i.lane = w.lane AND i.account_id = w.account_id AND i.seq > w.seq LIMIT 1) e ON true
  LEFT JOIN LATERAL (SELECT i.revoked_at, i.scopes & 2 <> 0 AS may_read, coalesce(i.expires_at <= clock_timestamp(), false) AS has_ended
      FROM keys i WHERE i.lane = w.lane AND i.id = w.key_id LIMIT 1) k ON true
  WHERE e.seq IS NOT NULL OR k.revoked_at IS NOT NULL OR k.has_ended OR NOT k.may_read;
END
$$;

-- Writes the event balance.depleted after a call was refused that needs more than the balance, at most once per hour. Returns the
-- seconds until the next one can be written.
CREATE OR REPLACE FUNCTION report_depleted(p_lane smallint, p_account_id text, p_required_micros bigint) RETURNS integer
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_account constant accounts := lock_account(p_lane, p_account_id);
  v_next timestamptz;
BEGIN
  SELECT e.created_at + interval '1 hour' INTO v_next FROM events e
    WHERE e.lane = p_lane AND e.account_id = p_account_id AND e.type = 'balance.depleted' ORDER BY e.seq DESC LIMIT 1;
  IF v_next > clock_timestamp() THEN
    RETURN ceil(extract(epoch FROM v_next - clock_timestamp()));
  ELSIF v_account.balance_micros >= p_required_micros THEN
    RETURN 0;
  END IF;
  PERFORM write_event(p_lane, p_account_id, 'balance.depleted',
    jsonb_build_object('balance_micros', v_account.balance_micros, 'required_micros', p_required_micros));
  RETURN 3600;
END
$$;

-- Deletes events that are older than p_days, at most p_limit, with their deliveries, and the queues of deleted webhooks of
-- operators. Returns the number of events.
CREATE OR REPLACE FUNCTION sweep_events(p_days integer, p_limit integer) RETURNS integer
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_before constant timestamptz := clock_timestamp() - make_interval(days => p_days);
  v_deleted integer;
BEGIN
  WITH deleted AS (
    DELETE FROM events e USING (
      SELECT o.lane, o.account_id, o.seq FROM events o WHERE o.created_at < v_before ORDER BY o.created_at LIMIT p_limit
    ) old WHERE e.lane = old.lane AND e.account_id = old.account_id AND e.seq = old.seq
    RETURNING e.lane, e.account_id, e.seq
  ), deliveries_of_deleted AS (
    DELETE FROM deliveries d USING deleted e WHERE d.lane = e.lane AND d.account_id = e.account_id AND d.seq = e.seq
  )
  SELECT count(*) INTO v_deleted FROM deleted;
  DELETE FROM webhook_queues q WHERE q.is_of_operators
    AND NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.lane = no_lane() AND w.id = q.webhook_id);
  RETURN v_deleted;
END
$$;
