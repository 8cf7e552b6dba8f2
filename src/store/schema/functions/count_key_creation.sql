-- Counts a key that an account creates with one of its own keys, in the hour by the database's clock. Returns 0, or the
-- seconds to wait when p_max keys were already created. The caller holds the lane.
-- The wait is a result, not an error: an error would also roll back a restart of the count after the clock was set back.
CREATE OR REPLACE FUNCTION count_key_creation(p_lane smallint, p_account_id text, p_max integer) RETURNS integer
  LANGUAGE plpgsql
AS $$
DECLARE
  v_epoch constant numeric := extract(epoch FROM clock_timestamp());
  v_now_hour constant integer := floor(v_epoch / 3600);
  v_hour integer;
  v_created integer;
BEGIN
  SELECT counting_window(c.hour, v_now_hour), CASE WHEN c.hour >= v_now_hour THEN c.created ELSE 0 END
    INTO v_hour, v_created FROM key_creations c WHERE c.lane = p_lane AND c.account_id = p_account_id;
  IF NOT FOUND THEN
    v_hour := v_now_hour;
    v_created := 0;
  END IF;
  INSERT INTO key_creations AS c (lane, account_id, hour, created)
    VALUES (p_lane, p_account_id, v_hour, v_created + (v_created < p_max)::integer)
    ON CONFLICT ON CONSTRAINT key_creations_pkey DO UPDATE SET hour = excluded.hour, created = excluded.created;
  RETURN CASE WHEN v_created < p_max THEN 0
    -- An hour in the future ends in more than 3,600 s, the longest wait in a response.
    WHEN v_hour > v_now_hour THEN 3600
    ELSE ceil(3600 - mod(v_epoch, 3600)) END;
END
$$;
