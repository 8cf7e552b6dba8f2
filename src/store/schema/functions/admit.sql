-- One batch of calls that move no money, or whose hold comes later; see decide_admissions.
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
BEGIN
  -- A crash may lose up to a second of counts; in return, admission does not wait for the disk.
  PERFORM set_config('synchronous_commit', 'off', true);
  RETURN QUERY SELECT * FROM decide_admissions(p_items, p_while_suspended);
END
$$;
