-- Admission: whether a call of a key is let in, and how it is counted in the window of the key.

-- Decides a batch of calls, one row per key. The fields of an item that have the names of scopes count the calls that need each
-- scope and take a slot; a call without its scope takes none. p_while_suspended has the same counts of the calls that are also
-- admitted while the account is suspended, null without any. Unknown keys are not returned. Calls with a previous secret
-- ("rotated") or whose addresses were compared with other ranges are sent again with what the row has, so that all calls of a key
-- are one group. Windows are locked in the order of the primary key, so batches of several servers never deadlock.
CREATE OR REPLACE FUNCTION admit(p_items admit_item[], p_while_suspended admit_item[] DEFAULT '{}') RETURNS SETOF admission
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
  -- Otherwise PostgreSQL plans each batch anew, which costs more than the batch.
  SET plan_cache_mode = force_generic_plan
  -- Plans are made once, possibly while the windows are few; only index look-ups are fast at every size.
  SET enable_seqscan = off
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_minute constant integer := floor(extract(epoch FROM v_now) / 60);
  v_left constant integer := ceil(60 - mod(extract(epoch FROM v_now), 60));
  v_known integer;
BEGIN
  IF EXISTS (
    SELECT 1 FROM lanes l WHERE NOT l.is_owned AND l.lane = ANY (ARRAY(SELECT i.lane FROM unnest(p_items) i))
  ) THEN
    PERFORM raise_lane_moved();
  END IF;
  -- Most batches of calls that take no slot change no window. The statement below would lock the windows, and so write to
  -- the log.
  IF NOT EXISTS (
    SELECT 1 FROM unnest(p_items) i WHERE i.generate + i.read + i.keys + i.webhooks + i.billing + i.any_scope > 0
      -- Not EXISTS: PostgreSQL might read and hash all windows.
      OR coalesce((
        SELECT w.minute FROM key_minutes w WHERE w.lane = i.lane AND w.key_id = (
          SELECT k.id FROM keys k WHERE k.lane = i.lane AND k.fingerprint = i.fingerprint)), 0) < v_minute
  ) THEN
    RETURN QUERY
    SELECT k.n, k.state, k.scopes, 0, NULL::integer, k.rpm, v_left, k.key_id, k.account_id, k.key_name, k.plan, k.visible_start,
           k.visible_end, k.balance_micros, k.models, k.allowed_cidrs, NULL::bytea, k.price_list_version
    FROM admitted_keys(p_items, p_while_suspended, v_now) k;
    GET DIAGNOSTICS v_known = ROW_COUNT;
    IF v_known < cardinality(p_items) THEN
      RETURN QUERY SELECT * FROM rotated_keys(p_items);
    END IF;
    RETURN;
  END IF;
  -- A crash may lose up to a second of counts; in return, admission does not wait for the disk.
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN QUERY
  WITH known AS MATERIALIZED (
    SELECT k.* FROM admitted_keys(p_items, p_while_suspended, v_now) k
  ), counted AS (
    INSERT INTO key_minutes AS w (lane, key_id, minute, used, granted, rpm, last_used_at)
    SELECT known.lane, known.key_id, v_minute, known.slots, known.slots, known.rpm, v_now
    FROM known WHERE known.is_used AND known.state IN ('active', 'suspended') ORDER BY known.lane, known.key_id
    ON CONFLICT ON CONSTRAINT key_minutes_pkey DO UPDATE SET
      minute = counting_window(w.minute, excluded.minute),
      used = CASE WHEN w.minute >= excluded.minute
        THEN w.used + greatest(0, least(excluded.used, excluded.rpm - w.used)) ELSE excluded.used END,
      granted = CASE WHEN w.minute >= excluded.minute
        THEN greatest(0, least(excluded.used, excluded.rpm - w.used)) ELSE excluded.used END,
      rpm = excluded.rpm,
      last_used_at = greatest(w.last_used_at, excluded.last_used_at)
    -- A call that takes no slot is recorded once a minute.
    WHERE excluded.used > 0 OR w.minute < excluded.minute
    RETURNING w.lane, w.key_id, w.minute, w.granted, w.used
  )
  SELECT known.n, known.state, known.scopes, coalesce(counted.granted, 0),
         -- A call without its scope takes no slot, but its response shows the window.
         CASE WHEN counted.minute IS NOT NULL THEN counted.used
              WHEN known.calls > 0 THEN coalesce((
                SELECT w.used FROM key_minutes w
                WHERE w.lane = known.lane AND w.key_id = known.key_id AND w.minute >= v_minute), 0)
         END, known.rpm,
         -- A window in the future ends in more than 60 s, the longest wait in a response.
         CASE WHEN counted.minute > v_minute THEN 60 ELSE v_left END, known.key_id, known.account_id, known.key_name,
         known.plan, known.visible_start, known.visible_end, known.balance_micros, known.models, known.allowed_cidrs, NULL::bytea,
         known.price_list_version
  FROM known LEFT JOIN counted ON counted.lane = known.lane AND counted.key_id = known.key_id;
  GET DIAGNOSTICS v_known = ROW_COUNT;
  IF v_known < cardinality(p_items) THEN
    RETURN QUERY SELECT * FROM rotated_keys(p_items);
  END IF;
END
$$;

-- The known keys of the items. Calls take no slot if the server compared their addresses with other ranges than the key has. A
-- function of its own, because this half of admission needs one index look-up per key, and the other one a hash join.
CREATE OR REPLACE FUNCTION admitted_keys(p_items admit_item[], p_while_suspended admit_item[], p_now timestamptz)
  RETURNS SETOF admitted_key
  LANGUAGE plpgsql STABLE ROWS 256
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
BEGIN
  RETURN QUERY
  SELECT a.n::integer, a.generate + a.read + a.keys + a.webhooks + a.billing + a.any_scope, c.generate IS NOT NULL AND v.is_checked,
         CASE WHEN v.is_checked THEN least(r.rpm, coalesce((k.scopes & 1) * c.generate + ((k.scopes >> 1) & 1) * c.read + ((k.scopes >> 2) & 1) * c.keys
           + ((k.scopes >> 3) & 1) * c.webhooks + ((k.scopes >> 4) & 1) * c.billing + c.any_scope, 0)) ELSE 0 END,
         k.lane, key_state(k.revoked_at, k.expires_at, acc.suspended_at, p_now), k.scopes, r.rpm, k.id, k.account_id, k.name, k.plan,
         k.visible_start, k.visible_end, acc.balance_micros, array_to_string(k.models, ','), v.cidrs, acc.price_list_version
  FROM unnest(p_items, p_while_suspended) WITH ORDINALITY AS a (
    lane, fingerprint, generate, read, keys, webhooks, billing, any_scope, cidrs, same_lane, same_fingerprint, suspended_generate, suspended_read,
    suspended_keys, suspended_webhooks, suspended_billing, suspended_any_scope, same_cidrs, n)
  JOIN keys k ON k.lane = a.lane AND k.fingerprint = a.fingerprint
  JOIN accounts acc ON acc.lane = k.lane AND acc.id = k.account_id
  JOIN plans p ON p.name = k.plan
  CROSS JOIN LATERAL (SELECT array_to_string(k.allowed_cidrs, ',')) AS t (cidrs)
  CROSS JOIN LATERAL (SELECT t.cidrs, t.cidrs IS NOT DISTINCT FROM a.cidrs) AS v (cidrs, is_checked)
  CROSS JOIN LATERAL (SELECT effective_rpm(k.rate_limit_rpm, k.may_exceed_plan, p.rpm)) AS r (rpm)
  CROSS JOIN LATERAL (
    SELECT CASE WHEN acc.suspended_at IS NULL THEN a.generate ELSE a.suspended_generate END,
           CASE WHEN acc.suspended_at IS NULL THEN a.read ELSE a.suspended_read END,
           CASE WHEN acc.suspended_at IS NULL THEN a.keys ELSE a.suspended_keys END,
           CASE WHEN acc.suspended_at IS NULL THEN a.webhooks ELSE a.suspended_webhooks END,
           CASE WHEN acc.suspended_at IS NULL THEN a.billing ELSE a.suspended_billing END,
           CASE WHEN acc.suspended_at IS NULL THEN a.any_scope ELSE a.suspended_any_scope END
  ) AS c (generate, read, keys, webhooks, billing, any_scope);
END
$$;

-- The limit that applies to a key.
CREATE OR REPLACE FUNCTION effective_rpm(p_own integer, p_may_exceed_plan boolean, p_plan integer) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN p_may_exceed_plan THEN p_own ELSE least(p_own, p_plan) END;

-- The rows of admission for the items that have the previous secret of a key.
CREATE OR REPLACE FUNCTION rotated_keys(p_items admit_item[]) RETURNS SETOF admission
  LANGUAGE plpgsql STABLE ROWS 1
  SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
BEGIN
  RETURN QUERY
  SELECT i.n::integer, CASE WHEN k.revoked_at IS NOT NULL THEN 'revoked' WHEN s.expires_at <= v_now THEN 'expired' ELSE 'rotated' END,
         k.scopes, 0, NULL::integer, 0, 0, k.id, k.account_id, k.name, k.plan, s.visible_start, s.visible_end, 0::bigint, NULL::text, NULL::text, k.fingerprint,
         0
  FROM unnest(p_items) WITH ORDINALITY AS i (lane, fingerprint, generate, read, keys, webhooks, billing, any_scope, cidrs, n)
  JOIN previous_secrets s ON s.lane = i.lane AND s.fingerprint = i.fingerprint
  JOIN keys k ON k.lane = s.lane AND k.id = s.key_id;
END
$$;

-- Whether a key can be used, or why not.
CREATE OR REPLACE FUNCTION key_state(
  p_revoked_at timestamptz, p_expires_at timestamptz, p_suspended_at timestamptz, p_now timestamptz
) RETURNS text
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN p_revoked_at IS NOT NULL THEN 'revoked' WHEN p_expires_at <= p_now THEN 'expired'
              WHEN p_suspended_at IS NOT NULL THEN 'suspended' ELSE 'active' END;

-- The window in which a call in p_current is counted. A window does not move back, so that a small correction of the clock does
-- not allow a used window again. If p_stored is more than one window ahead, counting restarts: the clock was set back.
CREATE OR REPLACE FUNCTION counting_window(p_stored integer, p_current integer) RETURNS integer
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN p_stored > p_current + 1 THEN p_current ELSE greatest(p_stored, p_current) END;
