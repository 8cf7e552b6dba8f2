-- Webhooks and their deliveries.

-- Creates a webhook of an account, or with an empty account one of operators. An account, like the operators, has at most p_max.
CREATE OR REPLACE FUNCTION create_webhook(
  p_caller caller, p_lane smallint, p_account_id text, p_id text, p_url text, p_description text, p_types text, p_max integer
) RETURNS webhook_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_secret constant text := new_webhook_secret();
  v_view webhook_view;
BEGIN
  IF p_lane <> no_lane() THEN
    PERFORM require_open_account(p_lane, p_account_id);
  END IF;
  -- Before the webhooks are counted: the locks of the log order the creations of operators.
  PERFORM log_shared_change(p_caller, p_lane, p_id, p_account_id);
  PERFORM refuse('webhook_limit_reached', format('There can be at most %s webhooks. Delete one that is not used.', p_max))
    WHERE (SELECT count(*) FROM webhooks w WHERE w.lane = p_lane AND w.account_id = p_account_id) >= p_max;
  INSERT INTO webhooks (lane, id, account_id, url, description, types, enabled_at, secret, created_at)
    VALUES (p_lane, p_id, p_account_id, p_url, p_description, string_to_array(p_types, ','), clock_timestamp(), v_secret,
      clock_timestamp());
  SELECT * INTO v_view FROM view_webhooks(p_lane, p_account_id, p_id);
  v_view.secret := v_secret;
  RETURN v_view;
END
$$;

-- A secret of 32 bytes, 244 bits of them random. It is made here, so that no statement has it as a parameter, which logs may
-- show.
CREATE OR REPLACE FUNCTION new_webhook_secret() RETURNS text
  LANGUAGE sql VOLATILE
  RETURN 'whsec_' || encode(uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()), 'base64');

-- Webhooks, the newest first: the one with the id, or all of the account. An empty account for any account, with an id, or for
-- those of operators.
CREATE OR REPLACE FUNCTION view_webhooks(p_lane smallint, p_account_id text, p_id text) RETURNS SETOF webhook_view
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT w.id, w.account_id, w.url, w.description, array_to_string(w.types, ','), w.state::text, w.disabled_reason,
      w.created_at, CASE WHEN w.previous_expires_at > clock_timestamp() THEN w.previous_expires_at END, NULL::text
    FROM webhooks w
    WHERE w.lane = p_lane AND (p_account_id = '' AND p_id <> '' OR w.account_id = p_account_id) AND p_id IN ('', w.id)
    ORDER BY w.id COLLATE "C" DESC
$$;

-- Changes the fields of a webhook that p_changes has: url, description, types, state. A webhook that is enabled, or gets a new
-- address, starts anew: earlier failures do not count, a pause that the old address asked for ends, and what is pending is due.
CREATE OR REPLACE FUNCTION update_webhook(p_caller caller, p_lane smallint, p_account_id text, p_id text, p_changes text)
  RETURNS SETOF webhook_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_old constant webhooks := lock_webhook(p_lane, p_account_id, p_id);
  v_new constant webhooks := jsonb_populate_record(v_old, p_changes::jsonb);
  v_starts_anew constant boolean := v_new.url <> v_old.url OR v_new.state = 'enabled' AND v_old.state <> 'enabled';
BEGIN
  UPDATE webhooks w SET url = v_new.url, description = v_new.description, types = v_new.types, state = v_new.state,
      disabled_reason = CASE WHEN v_new.state = 'disabled' THEN w.disabled_reason ELSE '' END,
      enabled_at = CASE WHEN v_starts_anew THEN clock_timestamp() ELSE w.enabled_at END,
      revision = w.revision + v_starts_anew::integer
    WHERE w.lane = p_lane AND w.id = p_id;
  IF v_starts_anew THEN
    -- An insert, because it waits for a claim that has created the queue and finds the webhook paused.
    INSERT INTO webhook_queues (lane, webhook_id, is_of_operators, due_at) VALUES (p_lane, p_id, p_id LIKE 'who\_%', 'infinity')
      ON CONFLICT ON CONSTRAINT webhook_queues_pkey DO NOTHING;
    PERFORM restart_queues(p_lane, ARRAY[p_id]);
  END IF;
  PERFORM log_shared_change(p_caller, p_lane, p_id, v_old.account_id);
  RETURN QUERY SELECT * FROM view_webhooks(p_lane, v_old.account_id, p_id);
END
$$;

-- Lets the queues of webhooks of a lane, or of operators, start anew: they are due, no pause counts, and they count as slow, like
-- new ones.
CREATE OR REPLACE FUNCTION restart_queues(p_lane smallint, p_ids text[]) RETURNS void
  LANGUAGE sql
AS $$
  SELECT 1 FROM webhook_queues q WHERE (q.lane = p_lane OR q.is_of_operators) AND q.webhook_id = ANY (p_ids)
    ORDER BY q.lane, q.webhook_id FOR UPDATE;
  UPDATE webhook_queues q SET due_at = clock_timestamp(), blocked_until = '-infinity', is_slow = true
    WHERE (q.lane = p_lane OR q.is_of_operators) AND q.webhook_id = ANY (p_ids);
$$;

-- Gives a webhook a new secret. Deliveries are signed with it, and for p_overlap_seconds with those that signed until now, the
-- last three: a receiver has one of these if the response of an earlier rotation was lost.
CREATE OR REPLACE FUNCTION rotate_webhook(p_caller caller, p_lane smallint, p_account_id text, p_id text, p_overlap_seconds integer)
  RETURNS webhook_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_old constant webhooks := lock_webhook(p_lane, p_account_id, p_id);
  v_secret constant text := new_webhook_secret();
  v_view webhook_view;
BEGIN
  UPDATE webhooks w SET secret = v_secret,
      previous_secrets = array_to_string((string_to_array(
        secrets_of_webhook(w.secret, w.previous_secrets, w.previous_expires_at), ' '))[:3], ' '),
      previous_expires_at = clock_timestamp() + make_interval(secs => p_overlap_seconds)
    WHERE w.lane = p_lane AND w.id = p_id;
  PERFORM log_shared_change(p_caller, p_lane, p_id, v_old.account_id);
  SELECT * INTO v_view FROM view_webhooks(p_lane, v_old.account_id, p_id);
  v_view.secret := v_secret;
  RETURN v_view;
END
$$;

-- Deletes a webhook. Its queue is deleted when a server finds it; its deliveries are deleted with their events.
CREATE OR REPLACE FUNCTION delete_webhook(p_caller caller, p_lane smallint, p_account_id text, p_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_old constant webhooks := lock_webhook(p_lane, p_account_id, p_id);
BEGIN
  DELETE FROM webhooks w WHERE w.lane = p_lane AND w.id = p_id;
  INSERT INTO woken_queues (lane, webhook_id) VALUES (p_lane, p_id);
  PERFORM log_shared_change(p_caller, p_lane, p_id, v_old.account_id);
END
$$;

-- Locks a webhook for a change: one of the account, or with an empty account any. The lane is locked.
CREATE OR REPLACE FUNCTION lock_webhook(p_lane smallint, p_account_id text, p_id text) RETURNS webhooks
  LANGUAGE plpgsql
AS $$
DECLARE
  v_webhook webhooks;
BEGIN
  SELECT w.* INTO v_webhook FROM webhooks w
    WHERE w.lane = p_lane AND w.id = p_id AND p_account_id IN ('', w.account_id) FOR UPDATE;
  PERFORM refuse('not_found', format('There is no webhook %s.', p_id)) WHERE NOT FOUND;
  RETURN v_webhook;
END
$$;

-- What a test of a webhook needs, in any state of it.
CREATE OR REPLACE FUNCTION webhook_to_test(p_caller caller, p_lane smallint, p_account_id text, p_id text)
  RETURNS TABLE (account_id text, url text, secrets text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_webhook constant webhooks := lock_webhook(p_lane, p_account_id, p_id);
BEGIN
  PERFORM log_change(p_caller, p_lane, p_id, v_webhook.account_id);
  RETURN QUERY SELECT v_webhook.account_id, v_webhook.url,
    secrets_of_webhook(v_webhook.secret, v_webhook.previous_secrets, v_webhook.previous_expires_at);
END
$$;

-- What deliveries to a webhook are signed with: its secret, and for a time those from before the last rotation, separated by
-- spaces.
CREATE OR REPLACE FUNCTION secrets_of_webhook(p_secret text, p_previous text, p_until timestamptz) RETURNS text
  LANGUAGE sql
  RETURN concat_ws(' ', p_secret, CASE WHEN p_until > clock_timestamp() THEN p_previous END);

-- Claims the next attempts of a server for a minute: at most p_any, p_hanging of them to endpoints that hang, and p_fast more to
-- fast ones. p_busy has the webhooks of operators to which it delivers: there are at most two attempts. p_max_lane is 1024 or
-- 1023.
CREATE OR REPLACE FUNCTION claim_deliveries(p_any integer, p_hanging integer, p_fast integer, p_busy text[], p_max_lane smallint)
  RETURNS TABLE (
    lane smallint, webhook_id text, claim bigint, is_fast_only boolean, is_hanging boolean, account_id text, seq bigint, event_id text, type text,
    created_at timestamptz, data text, attempts smallint, url text, secrets text, revision integer
  )
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
AS $$
#variable_conflict use_column
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_queues webhook_queues[];
BEGIN
  -- A crash that loses the claim leads to one more attempt, so the commit does not wait for the disk.
  PERFORM set_config('synchronous_commit', 'off', true);
  PERFORM wake_queues(v_now);
  v_queues := ARRAY(
    WITH fast AS (
      SELECT i AS q FROM webhook_queues i WHERE NOT i.is_of_operators AND NOT i.is_slow AND NOT i.is_hanging AND i.ready_at <= v_now
        ORDER BY i.ready_at LIMIT p_any + p_fast FOR UPDATE SKIP LOCKED
    ), slow AS (
      SELECT i AS q FROM webhook_queues i WHERE NOT i.is_of_operators AND i.is_slow AND NOT i.is_hanging AND i.ready_at <= v_now
        ORDER BY i.ready_at LIMIT p_any FOR UPDATE SKIP LOCKED
    ), hanging AS (
      SELECT i AS q FROM webhook_queues i WHERE NOT i.is_of_operators AND i.is_slow AND i.is_hanging AND i.ready_at <= v_now
        ORDER BY i.ready_at LIMIT least(p_any, p_hanging) FOR UPDATE SKIP LOCKED
    ), of_operators AS (
      SELECT o.q FROM webhooks w CROSS JOIN LATERAL (
        SELECT i AS q FROM webhook_queues i WHERE i.is_of_operators AND i.webhook_id = w.id AND i.ready_at <= v_now
          ORDER BY i.ready_at LIMIT greatest(0, 2 - cardinality(array_positions(p_busy, w.id))) FOR UPDATE SKIP LOCKED) o
      WHERE w.lane = 1024
    )
    TABLE fast UNION ALL TABLE slow UNION ALL TABLE hanging UNION ALL TABLE of_operators);
  IF v_queues = '{}' THEN
    RETURN;
  END IF;
  -- A second statement, because a statement with the locks does not see what was stored before it acquired them.
  RETURN QUERY WITH found AS (
    SELECT q.lane, q.webhook_id, q.is_slow, q.is_hanging, q.ready_at, w.url, w.secrets, w.revision, n.account_id, n.seq, n.due_at, n.attempts,
        CASE WHEN w.state IS NULL THEN 'deleted'
          WHEN EXISTS (SELECT 1 FROM lanes l WHERE l.lane = q.lane AND NOT l.is_owned) THEN 'moved'
          WHEN w.state = 'paused' OR q.lane > p_max_lane THEN 'blocked'
          WHEN w.state = 'disabled' AND n.due_at IS NOT NULL THEN 'disabled'
          WHEN n.due_at <= v_now THEN 'due'
          ELSE 'waiting' END AS state
      FROM unnest(v_queues) q
      -- Each limit of 1 keeps a look-up by key.
      LEFT JOIN LATERAL (
        SELECT i.state, i.url, i.revision, secrets_of_webhook(i.secret, i.previous_secrets, i.previous_expires_at) AS secrets FROM webhooks i
        WHERE i.lane = CASE WHEN q.is_of_operators THEN no_lane() ELSE q.lane END AND i.id = q.webhook_id LIMIT 1) w ON true
      LEFT JOIN LATERAL next_delivery(q.lane, q.webhook_id, w.revision) n ON true
  ), deleted AS (
    DELETE FROM webhook_queues q USING found f WHERE f.state = 'deleted' AND q.lane = f.lane AND q.webhook_id = f.webhook_id
  ), failed AS (
    UPDATE deliveries d SET state = 'failed', error = 'The webhook was disabled.'
      FROM found f CROSS JOIN LATERAL (SELECT i.account_id, i.seq FROM deliveries i
        WHERE i.lane = f.lane AND i.webhook_id = f.webhook_id AND i.state = 'pending' ORDER BY i.due_at LIMIT 1000) p
      WHERE f.state = 'disabled' AND d.lane = f.lane AND d.webhook_id = f.webhook_id AND d.account_id = p.account_id AND d.seq = p.seq
  ), fast_only AS (
    SELECT f.*, NOT f.is_slow AND row_number() OVER (PARTITION BY f.is_slow ORDER BY f.ready_at) <= p_fast AS is_fast_only,
        row_number() OVER (PARTITION BY f.is_hanging ORDER BY f.ready_at) AS hanging_n
      FROM found f WHERE f.state = 'due'
  ), numbered AS (
    SELECT f.*, row_number() OVER (PARTITION BY f.is_fast_only ORDER BY f.ready_at) AS n FROM fast_only f
      WHERE NOT f.is_hanging OR f.hanging_n <= p_hanging
  ), chosen AS (
    SELECT n.lane, n.webhook_id, n.state, n.due_at, n.is_fast_only FROM numbered n WHERE n.is_fast_only OR n.n <= p_any
    UNION ALL
    SELECT f.lane, f.webhook_id, f.state, f.due_at, NULL FROM found f WHERE f.state IN ('moved', 'blocked', 'disabled', 'waiting')
  ), updated AS (
    UPDATE webhook_queues q SET claims = q.claims + (c.state = 'due')::integer,
        claimed_until = CASE c.state WHEN 'due' THEN v_now + interval '1 minute' ELSE q.claimed_until END,
        -- A queue of a lane that another cell owns waits until this cell owns it. If the queues of paused webhooks came up each minute,
        -- they would take turns from others. Enabling a webhook of an account unblocks its queue; those of operators have more queues.
        blocked_until = CASE c.state WHEN 'moved' THEN 'infinity'
          WHEN 'blocked' THEN v_now + CASE WHEN q.is_of_operators THEN interval '1 minute' ELSE interval '1 hour' END
          ELSE q.blocked_until END,
        due_at = CASE c.state WHEN 'waiting' THEN coalesce(c.due_at, 'infinity') WHEN 'disabled' THEN v_now ELSE q.due_at END
      FROM chosen c WHERE q.lane = c.lane AND q.webhook_id = c.webhook_id
      RETURNING q.lane, q.webhook_id, q.claims, c.is_fast_only
  )
  SELECT u.lane, u.webhook_id, u.claims, u.is_fast_only, f.is_hanging, e.account_id, e.seq, e.id, e.type, e.created_at, e.data::text,
      f.attempts, f.url, f.secrets, f.revision
    FROM updated u JOIN found f ON f.lane = u.lane AND f.webhook_id = u.webhook_id
    JOIN events e ON e.lane = f.lane AND e.account_id = f.account_id AND e.seq = f.seq
    WHERE u.is_fast_only IS NOT NULL;
END
$$;

-- Makes queues due that got deliveries.
CREATE OR REPLACE FUNCTION wake_queues(p_now timestamptz) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_places constant tid[] := ARRAY(SELECT i.ctid FROM woken_queues i LIMIT 1000 FOR UPDATE SKIP LOCKED);
BEGIN
  IF v_places = '{}' THEN
    RETURN;
  END IF;
  WITH woken AS (
    DELETE FROM woken_queues w WHERE w.ctid = ANY (v_places) RETURNING w.lane, w.webhook_id
  )
  INSERT INTO webhook_queues AS q (lane, webhook_id, is_of_operators, due_at)
    SELECT DISTINCT w.lane, w.webhook_id, w.webhook_id LIKE 'who\_%', p_now FROM woken w ORDER BY w.lane, w.webhook_id
    ON CONFLICT ON CONSTRAINT webhook_queues_pkey DO UPDATE SET due_at = excluded.due_at WHERE q.due_at > excluded.due_at;
END
$$;

-- The next delivery of a queue, with the time at which it is due. Attempts of an earlier revision of the webhook do not count.
CREATE OR REPLACE FUNCTION next_delivery(p_lane smallint, p_webhook_id text, p_revision integer)
  RETURNS TABLE (account_id text, seq bigint, due_at timestamptz, attempts smallint)
  LANGUAGE sql STABLE
AS $$
  SELECT d.account_id, d.seq, CASE d.revision WHEN p_revision THEN d.due_at ELSE d.created_at END,
      CASE d.revision WHEN p_revision THEN d.attempts ELSE 0 END
    FROM deliveries d
    WHERE d.lane = p_lane AND d.webhook_id = p_webhook_id AND d.state = 'pending' ORDER BY d.due_at LIMIT 1
$$;

-- Stores the outcomes of claimed attempts (JSON), and ends their claims; one without "attempt" was not made. Those of an earlier
-- revision do not count, nor do those that came after another server's, unless accepted. Returns the webhooks to disable.
CREATE OR REPLACE FUNCTION store_attempts(p_attempts text) RETURNS TABLE (webhook_id text, revision integer, reason text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
  SET enable_hashjoin = off SET enable_mergejoin = off SET enable_material = off
AS $$
#variable_conflict use_column
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_old constant timestamptz := v_now - interval '5 days';
  v_attempts delivery_attempt[];
BEGIN
  -- See claim_deliveries.
  PERFORM set_config('synchronous_commit', 'off', true);
  v_attempts := ARRAY(
    WITH given AS (
      -- A server that was suspended can have two attempts of a queue.
      SELECT DISTINCT ON (i.lane, i.webhook_id) i AS a FROM json_populate_recordset(NULL::delivery_attempt, p_attempts::json) i
      ORDER BY i.lane, i.webhook_id, i.error = '' DESC NULLS LAST, i.claim DESC
    )
    SELECT g.a FROM given g JOIN webhook_queues q ON q.lane = (g.a).lane AND q.webhook_id = (g.a).webhook_id
    ORDER BY q.lane, q.webhook_id FOR UPDATE OF q);
  IF EXISTS (SELECT 1 FROM lanes l WHERE NOT l.is_owned AND l.lane = ANY (ARRAY(SELECT i.lane FROM unnest(v_attempts) i))) THEN
    PERFORM raise_lane_moved();
  END IF;
  -- Each attempt gets the present revision of its webhook, NULL if that was deleted. Another statement, because one with the locks does
  -- not see a change of the webhook for which it waited.
  v_attempts := ARRAY(
    SELECT CASE w.revision WHEN i.revision THEN i
        ELSE (i.lane, i.webhook_id, i.claim, w.revision, i.account_id, i.seq, i.event_id,
          NULL, NULL, NULL, NULL, NULL, NULL, NULL)::delivery_attempt END
    FROM unnest(v_attempts) i
    LEFT JOIN webhooks w ON w.lane = CASE WHEN i.webhook_id LIKE 'who\_%' THEN no_lane() ELSE i.lane END AND w.id = i.webhook_id);
  UPDATE deliveries d SET attempts = a.attempt, revision = a.revision, attempted_at = v_now, status = a.status,
      latency_ms = a.latency_ms, error = a.error, answer = a.answer,
      state = CASE WHEN a.error = '' THEN 'delivered' WHEN a.retry_ms IS NULL THEN 'failed' ELSE 'pending' END::delivery_state,
      due_at = v_now + coalesce(a.retry_ms, 0) * interval '1 millisecond'
    FROM unnest(v_attempts) a
    WHERE d.lane = a.lane AND d.account_id = a.account_id AND d.seq = a.seq AND d.webhook_id = a.webhook_id AND d.state = 'pending'
      -- A promoted copy of this cell can have written and delivered another event with the same number.
      AND d.event_id = a.event_id
      AND (CASE d.revision WHEN a.revision THEN d.attempts ELSE 0 END = a.attempt - 1 OR a.error = '');
  -- Otherwise an endpoint that is fast and slow in turn would occupy the places for fast ones.
  UPDATE webhook_queues q SET is_slow = CASE WHEN a.latency_ms < 1000 THEN coalesce(q.slow_at > v_now - interval '10 minutes', false)
        WHEN a.latency_ms >= 1000 THEN true ELSE q.is_slow END,
      slow_at = CASE WHEN a.latency_ms >= 1000 THEN v_now ELSE q.slow_at END,
      is_hanging = CASE WHEN a.latency_ms < 5000 THEN coalesce(q.hung_at > v_now - interval '10 minutes', false)
        WHEN a.latency_ms >= 5000 THEN true ELSE q.is_hanging END,
      hung_at = CASE WHEN a.latency_ms >= 5000 THEN v_now ELSE q.hung_at END,
      failing_since = CASE WHEN a.error = '' THEN NULL WHEN a.error <> '' THEN coalesce((SELECT q.failing_since FROM webhooks w
          WHERE w.lane = CASE WHEN q.is_of_operators THEN no_lane() ELSE q.lane END AND w.id = q.webhook_id
            AND w.enabled_at <= q.failing_since), v_now)
        ELSE q.failing_since END,
      accepted_at = CASE a.error WHEN '' THEN v_now ELSE q.accepted_at END,
      -- At least until now: queues with many events that are due take turns with the others.
      blocked_until = CASE WHEN a.attempt IS NULL THEN q.blocked_until
        ELSE v_now + coalesce(a.pause_ms, 0) * interval '1 millisecond' END,
      claimed_until = CASE q.claims WHEN a.claim THEN '-infinity' ELSE q.claimed_until END,
      -- A queue whose webhook was deleted meanwhile is deleted by its next claim.
      due_at = CASE WHEN a.revision IS NULL THEN v_now
        ELSE coalesce((SELECT n.due_at FROM next_delivery(a.lane, a.webhook_id, a.revision) n), 'infinity') END
    FROM unnest(v_attempts) a WHERE q.lane = a.lane AND q.webhook_id = a.webhook_id;
  RETURN QUERY SELECT a.webhook_id, a.revision, CASE a.status WHEN 410 THEN 'gone' ELSE 'failing' END FROM unnest(v_attempts) a
    JOIN webhook_queues q ON q.lane = a.lane AND q.webhook_id = a.webhook_id
    -- The endpoint may have accepted nothing because there was no event for days: the attempts of half an hour decide.
    WHERE a.error <> '' AND (a.status = 410 OR a.attempt >= 4 AND q.failing_since < v_old
      -- The endpoint of operators may accept the events of other lanes.
      AND NOT EXISTS (SELECT 1 FROM webhook_queues o WHERE o.is_of_operators AND o.webhook_id = a.webhook_id AND o.accepted_at > v_old));
END
$$;

-- Disables a webhook, and writes the event about it, unless it was changed since the attempt that decided was claimed.
CREATE OR REPLACE FUNCTION disable_webhook(p_lane smallint, p_id text, p_revision integer, p_reason text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_webhook webhooks;
BEGIN
  IF p_lane <> no_lane() THEN
    PERFORM require_lane(p_lane);
  END IF;
  UPDATE webhooks w SET state = 'disabled', disabled_reason = p_reason
    WHERE w.lane = p_lane AND w.id = p_id AND w.revision = p_revision AND w.state <> 'disabled'
      AND (p_reason = 'gone' OR w.enabled_at < clock_timestamp() - interval '5 days')
    RETURNING w.* INTO v_webhook;
  IF FOUND THEN
    PERFORM write_event(p_lane, v_webhook.account_id, 'webhook.disabled',
      jsonb_build_object('webhook_id', p_id, 'url', v_webhook.url, 'reason', p_reason));
    -- A server finds the queues, and lists what is pending as failed.
    INSERT INTO woken_queues (lane, webhook_id) SELECT q.lane, q.webhook_id FROM webhook_queues q WHERE q.webhook_id = p_id;
    IF p_lane = no_lane() THEN
      PERFORM change_shared_data();
    END IF;
  END IF;
END
$$;

-- The deliveries of a webhook, with the data of their events, before the one at the given place, the newest event first: those of
-- a state, or all. An empty p_before_id for the last ones.
-- null: due_at, attempted_at, status, latency_ms
-- state: pending | delivered | failed
CREATE OR REPLACE FUNCTION view_deliveries(p_webhook_id text, p_state text, p_before_micros bigint, p_before_id text, p_limit integer)
  RETURNS TABLE (
    event_id text, account_id text, seq bigint, type text, created_at timestamptz, created_micros bigint, state text, attempts smallint,
    due_at timestamptz, attempted_at timestamptz, status smallint, latency_ms integer, error text, answer text, data text
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_before constant timestamptz := CASE p_before_id WHEN '' THEN 'infinity'
    ELSE timestamptz 'epoch' + p_before_micros * interval '1 microsecond' END;
BEGIN
  RETURN QUERY SELECT d.event_id, d.account_id, d.seq, e.type, d.created_at, (extract(epoch FROM d.created_at) * 1000000)::bigint,
      d.state::text, d.attempts, CASE d.state WHEN 'pending' THEN d.due_at END, d.attempted_at, d.status, d.latency_ms, d.error,
      d.answer, e.data::text
    FROM unnest(CASE p_state WHEN '' THEN enum_range(NULL::delivery_state) ELSE ARRAY[p_state::delivery_state] END) s (state)
    CROSS JOIN LATERAL (
      -- See list_events.
      SELECT * FROM deliveries i WHERE i.webhook_id = p_webhook_id
        AND (i.state, i.created_at, i.event_id) < (s.state, v_before, p_before_id) AND (i.state, i.created_at) >= (s.state, '-infinity')
      ORDER BY i.state DESC, i.created_at DESC, i.event_id DESC LIMIT p_limit) d
    JOIN events e ON e.lane = d.lane AND e.account_id = d.account_id AND e.seq = d.seq
    ORDER BY d.created_at DESC, d.event_id DESC LIMIT p_limit;
END
$$;

-- Makes events pending for a webhook: p_event_id, or those of its types from p_from to before p_to that were not delivered and
-- are not pending, among the first p_limit after the given place. Returns their number, and the last place if there are more: the
-- number of the event, or for all accounts (an empty p_account_id) its time and id.
-- null: p_from, p_to, last, last_id
CREATE OR REPLACE FUNCTION redeliver(
  p_caller caller, p_webhook_id text, p_types text, p_lane smallint, p_account_id text, p_event_id text, p_from timestamptz, p_to timestamptz,
  p_max_lane smallint, p_after bigint, p_after_id text, p_limit integer, p_is_logged boolean
) RETURNS TABLE (renewed integer, last bigint, last_id text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, CASE p_account_id WHEN '' THEN no_lane() ELSE p_lane END);
  v_types constant text[] := string_to_array(p_types, ',');
  v_now constant timestamptz := clock_timestamp();
  v_from constant timestamptz := coalesce(p_from, '-infinity');
  v_to constant timestamptz := coalesce(p_to, v_now);
  v_after constant timestamptz := CASE p_after_id WHEN '' THEN '-infinity'
    ELSE timestamptz 'epoch' + p_after * interval '1 microsecond' END;
  v_first bigint;
  v_end bigint;
  v_chosen events[];
BEGIN
  IF p_event_id <> '' THEN
    v_chosen := ARRAY(SELECT e FROM events e WHERE e.lane IN (p_lane, p_max_lane) AND e.id = p_event_id
      AND p_account_id IN ('', e.account_id) AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = e.lane AND NOT l.is_owned));
  ELSIF p_account_id <> '' THEN
    v_first := greatest(event_seq_at(p_lane, p_account_id, v_from), p_after + 1);
    v_end := event_seq_at(p_lane, p_account_id, v_to);
    IF v_end > v_first + p_limit THEN
      v_end := v_first + p_limit;
      last := v_end - 1;
    END IF;
    v_chosen := ARRAY(SELECT e FROM events e
      WHERE e.lane = p_lane AND e.account_id = p_account_id AND e.seq >= v_first AND e.seq < v_end);
  ELSE
    v_chosen := ARRAY(SELECT e FROM events e
      WHERE (e.created_at, e.id) > (v_after, p_after_id) AND e.created_at >= v_from AND e.created_at < v_to
      ORDER BY e.created_at, e.id LIMIT p_limit);
    IF cardinality(v_chosen) = p_limit THEN
      last := (extract(epoch FROM v_chosen[p_limit].created_at) * 1000000)::bigint;
      last_id := v_chosen[p_limit].id;
    END IF;
  END IF;
  WITH chosen AS (
    SELECT c.* FROM unnest(v_chosen) c
    -- The limit of 1 keeps a look-up by key.
    LEFT JOIN LATERAL (SELECT i.state FROM deliveries i
      WHERE i.lane = c.lane AND i.account_id = c.account_id AND i.seq = c.seq AND i.webhook_id = p_webhook_id LIMIT 1) d ON true
    WHERE p_event_id <> '' OR (v_types = '{}' OR c.type = ANY (v_types))
      AND d.state IS DISTINCT FROM 'delivered' AND d.state IS DISTINCT FROM 'pending' AND c.lane <= p_max_lane
      AND (p_account_id <> '' OR NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = c.lane AND NOT l.is_owned))
  ), renewed_rows AS (
    INSERT INTO deliveries AS d (lane, account_id, seq, webhook_id, event_id, created_at, due_at)
      SELECT c.lane, c.account_id, c.seq, p_webhook_id, c.id, c.created_at,
        v_now + interval '1 microsecond' * row_number() OVER (ORDER BY c.created_at, c.id)
      FROM chosen c ORDER BY c.lane, c.account_id, c.seq
      ON CONFLICT ON CONSTRAINT deliveries_pkey DO UPDATE SET state = 'pending', attempts = 0, due_at = excluded.due_at
      RETURNING d.lane
  ), woken AS (
    INSERT INTO woken_queues (lane, webhook_id) SELECT DISTINCT r.lane, p_webhook_id FROM renewed_rows r
  )
  SELECT count(*) INTO renewed FROM renewed_rows;
  IF p_is_logged THEN
    PERFORM log_change(p_caller, CASE p_account_id WHEN '' THEN no_lane() ELSE p_lane END, p_webhook_id, p_account_id);
  END IF;
  RETURN NEXT;
END
$$;

-- The number of the first event of an account at p_time or later, found by bisection: numbers have no gaps, and times increase
-- with them.
CREATE OR REPLACE FUNCTION event_seq_at(p_lane smallint, p_account_id text, p_time timestamptz) RETURNS bigint
  LANGUAGE plpgsql STABLE
AS $$
DECLARE
  v_low bigint := (SELECT min(e.seq) FROM events e WHERE e.lane = p_lane AND e.account_id = p_account_id);
  v_high bigint := (SELECT i.seq + 1 FROM event_ends i WHERE i.lane = p_lane AND i.account_id = p_account_id);
  v_middle bigint;
BEGIN
  WHILE v_low < v_high LOOP
    v_middle := (v_low + v_high) / 2;
    IF (SELECT e.created_at FROM events e WHERE e.lane = p_lane AND e.account_id = p_account_id AND e.seq = v_middle) < p_time THEN
      v_low := v_middle + 1;
    ELSE
      v_high := v_middle;
    END IF;
  END LOOP;
  RETURN v_high;
END
$$;
