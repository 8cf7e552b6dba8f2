-- The operator log: a chain of events for each lane.

-- A page of the operator log, newest first, after the event at the given place. An empty or NULL filter matches all.
-- Each call is planned with its filters, so that PostgreSQL uses the index of one of them.
-- null: p_from, p_to
CREATE OR REPLACE FUNCTION list_operator_events(
  p_actor_id text, p_method text, p_target text, p_account_id text, p_from timestamptz, p_to timestamptz,
  p_before_micros bigint, p_before_lane smallint, p_before_seq bigint, p_limit integer
) RETURNS TABLE (
    lane smallint, seq bigint, created_at timestamptz, created_micros bigint, actor_id text, actor_name text, method text,
    target text, account_id text, reason text, outcome text, details json, request_id text
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
  SET plan_cache_mode = force_custom_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_time timestamptz := timestamptz 'epoch' + p_before_micros * interval '1 microsecond';
  v_lane smallint := p_before_lane;
BEGIN
  -- One bound for the page and the filter: PostgreSQL would start at the looser of two.
  IF p_before_micros = 0 OR p_to <= v_time THEN
    v_time := coalesce(p_to, 'infinity');
    v_lane := -1;
  END IF;
  RETURN QUERY
  SELECT e.lane, e.seq, e.created_at, (extract(epoch FROM e.created_at) * 1000000)::bigint, e.actor_id, e.actor_name,
         e.method, e.target, e.account_id, e.reason, e.outcome, e.details, e.request_id
  FROM operator_events e
  WHERE (p_actor_id = '' OR e.actor_id = p_actor_id) AND (p_method = '' OR e.method = p_method)
    AND (p_target = '' OR e.target = p_target)
    AND (p_account_id = '' OR (e.account_id = p_account_id AND e.account_id <> ''))
    AND e.created_at >= coalesce(p_from, '-infinity')
    AND (e.created_at, e.lane, e.seq) < (v_time, v_lane, p_before_seq)
  ORDER BY e.created_at DESC, e.lane DESC, e.seq DESC LIMIT p_limit;
END
$$;

-- Records a change by an operator, a member, or a person who joins an account, in its transaction. Changes by keys are not
-- recorded.
CREATE OR REPLACE FUNCTION log_change(p_caller caller, p_lane smallint, p_target text, p_account_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_caller.kind <> 'key' THEN
    PERFORM append_operator_event(p_caller, p_lane, p_target, p_account_id, 'ok');
  END IF;
END
$$;

-- Records a change of a limit, a plan, a webhook or an operator, and shares it with the other cells if it belongs to no lane.
CREATE OR REPLACE FUNCTION log_shared_change(p_caller caller, p_lane smallint, p_target text, p_account_id text) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  PERFORM log_change(p_caller, p_lane, p_target, p_account_id);
  IF p_lane = no_lane() THEN
    PERFORM change_shared_data();
  END IF;
END
$$;

-- Records a change that was refused, at most 100 of an operator in a minute: an operator without rights must not fill the
-- disk.
CREATE OR REPLACE FUNCTION log_refusal(p_caller caller, p_lane smallint, p_account_id text, p_outcome text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  c_max_per_minute constant integer := 100;
  v_since constant timestamptz := clock_timestamp() - interval '1 minute';
BEGIN
  PERFORM require_lane(p_lane);
  IF p_outcome = 'ok' THEN
    RAISE EXCEPTION 'ok is the outcome of a change that was made';
  END IF;
  IF (SELECT count(*) FROM (
        SELECT 1 FROM operator_events e
        WHERE e.actor_id = p_caller.id AND e.created_at > v_since AND e.outcome <> 'ok' LIMIT c_max_per_minute
      ) recent) < c_max_per_minute THEN
    PERFORM append_operator_event(p_caller, p_lane, p_caller.target, p_account_id, p_outcome);
  END IF;
END
$$;

-- Logs that the caller opens a page of an account: an operator its customer page, a member its page at the payment provider.
CREATE OR REPLACE FUNCTION log_opened_page(p_caller caller, p_lane smallint, p_account_id text) RETURNS void
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT prove(p_caller, p_lane);
  SELECT require_account(p_lane, p_account_id);
  SELECT log_change(p_caller, p_lane, p_account_id, p_account_id);
$$;

-- Appends an event to the chain of its lane.
CREATE OR REPLACE FUNCTION append_operator_event(
  p_caller caller, p_lane smallint, p_target text, p_account_id text, p_outcome text
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_chain operator_chains;
  v_new operator_events;
BEGIN
  SELECT * INTO v_chain FROM operator_chains WHERE lane = p_lane FOR UPDATE;
  v_new := ROW(p_lane, v_chain.last_seq + 1, greatest(clock_timestamp(), v_chain.last_at), p_caller.id,
    p_caller.name, p_caller.method, p_target, p_account_id, p_caller.reason, p_outcome, p_caller.details, p_caller.request_id,
    NULL)::operator_events;
  v_new.hash := operator_event_hash(v_chain.last_hash, v_new);
  INSERT INTO operator_events SELECT v_new.*;
  UPDATE operator_chains SET last_seq = v_new.seq, last_hash = v_new.hash, last_at = v_new.created_at
    WHERE lane = p_lane;
END
$$;

-- The hash of an event: sha256(hash of the previous event ‖ fields). Each text follows its length, so two different events
-- never give the same bytes.
CREATE OR REPLACE FUNCTION operator_event_hash(p_before bytea, p_row operator_events) RETURNS bytea
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN sha256(p_before || convert_to(concat_ws(':', p_row.lane, p_row.seq,
    (extract(epoch FROM p_row.created_at) * 1000000)::bigint, octet_length(p_row.actor_id), p_row.actor_id,
    octet_length(p_row.actor_name), p_row.actor_name, octet_length(p_row.method), p_row.method,
    octet_length(p_row.target), p_row.target, octet_length(p_row.account_id), p_row.account_id,
    octet_length(p_row.reason), p_row.reason, octet_length(p_row.outcome), p_row.outcome,
    octet_length(p_row.details::text), p_row.details::text, octet_length(p_row.request_id), p_row.request_id), 'UTF8'));
