-- Decides a batch of calls, one row per key: how many of them still fit the key's window, and the data of the key that
-- the calls need. The fields of an item that have the names of scopes count the calls that need each scope and take a slot; a call
-- without its scope takes none. p_while_suspended has the same counts, in the same order, of the calls that are also admitted
-- while the account is suspended; only they take slots and are recorded then. Its counts are null if an item has no such call.
-- Unknown keys are not returned. A call with the previous secret of a key gets the state "rotated" and the fingerprint of the present
-- one: it is sent again with that, so that all calls of a key are counted as one group.
-- Calls whose addresses were checked against other ranges than those of the key take no slot: the server checks them against the ranges
-- that it gets, and sends them again.
-- Windows are locked in the order of the primary key, so batches of several servers never deadlock.
CREATE OR REPLACE FUNCTION admit(p_items admit_item[], p_while_suspended admit_item[] DEFAULT '{}') RETURNS TABLE (
    n integer, state text, scopes smallint, granted integer, used integer, rpm integer, seconds_left integer,
    key_id text, account_id text, key_name text, plan text, visible_start text, visible_end text,
    balance_micros bigint, models text, allowed_cidrs text, current_fingerprint bytea, price_list_version integer
  )
  LANGUAGE plpgsql SECURITY DEFINER
  SET search_path FROM CURRENT
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
    SELECT k.n, key_state(k.revoked_at, k.expires_at, k.suspended_at, v_now), k.scopes, 0, NULL::integer, k.rpm, v_left,
           k.key_id, k.account_id, k.key_name, k.plan, k.visible_start, k.visible_end, k.balance_micros, k.models, k.allowed_cidrs, NULL::bytea,
           k.price_list_version
    FROM admitted_keys(p_items, p_while_suspended) k;
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
    SELECT k.*,
           key_state(k.revoked_at, k.expires_at, k.suspended_at, v_now) AS state
    FROM admitted_keys(p_items, p_while_suspended) k
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
