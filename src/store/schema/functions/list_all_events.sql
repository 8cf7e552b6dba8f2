-- A page of the events of all accounts or of one, newest first, before the event at the given place. Each call is planned with its
-- filters, so that PostgreSQL uses the index of one of them.
CREATE OR REPLACE FUNCTION list_all_events(
  p_account_id text, p_types text, p_before_micros bigint, p_before_id text, p_limit integer
) RETURNS TABLE (
    id text, account_id text, seq bigint, type text, created_at timestamptz, data text, lane smallint, created_micros bigint
  )
  LANGUAGE plpgsql STABLE SECURITY DEFINER
  SET search_path FROM CURRENT
  SET plan_cache_mode = force_custom_plan
  SET enable_seqscan = off SET enable_bitmapscan = off SET enable_sort = off
AS $$
DECLARE
  v_before constant timestamptz := CASE WHEN p_before_id = '' THEN 'infinity'
    ELSE timestamptz 'epoch' + p_before_micros * interval '1 microsecond' END;
BEGIN
  RETURN QUERY SELECT e.id, e.account_id, e.seq, e.type, e.created_at, e.data::text, e.lane,
      (extract(epoch FROM e.created_at) * 1000000)::bigint
    FROM events e
    WHERE (p_account_id = '' OR e.account_id = p_account_id) AND (p_types = '' OR e.type = ANY (string_to_array(p_types, ',')))
      AND (e.created_at, e.id) < (v_before, p_before_id)
    ORDER BY e.created_at DESC, e.id DESC LIMIT p_limit;
END
$$;
