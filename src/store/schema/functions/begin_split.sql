-- Records that lanes shall move to a cell of this name. Changes no ownership.
CREATE OR REPLACE FUNCTION begin_split(p_id text, p_source text, p_target text, p_lanes smallint[]) RETURNS void
  LANGUAGE plpgsql
  SET search_path FROM CURRENT
AS $$
DECLARE
  v_name text;
  v_elsewhere smallint;
BEGIN
  INSERT INTO cell_name (name) VALUES (p_source) ON CONFLICT DO NOTHING;
  SELECT n.name INTO v_name FROM cell_name n;
  IF v_name <> p_source THEN
    RAISE EXCEPTION 'this database is the cell "%", not "%"', v_name, p_source;
  END IF;
  SELECT min(l.lane) INTO v_elsewhere FROM lanes l WHERE l.lane = ANY (p_lanes) AND NOT l.is_owned;
  IF v_elsewhere IS NOT NULL THEN
    RAISE EXCEPTION 'the cell "%" does not own lane %', p_source, v_elsewhere;
  END IF;
  INSERT INTO cell_splits (id, target, lanes, state, changed_at)
    VALUES (p_id, p_target, p_lanes, 'begun', clock_timestamp());
END
$$;
