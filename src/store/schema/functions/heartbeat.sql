-- A heartbeat: registers the server and returns the database's clock. Removes servers without a heartbeat for 20 s,
-- unless the heartbeats of this server had a gap within that time: the cause may have delayed those of the others too.
-- p_cells are the names of the cells that the server would use; NULL leaves them unchanged.
CREATE OR REPLACE FUNCTION heartbeat(p_server_id text, p_cells text DEFAULT NULL) RETURNS TABLE (clock timestamptz)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_now constant timestamptz := clock_timestamp();
  v_lost constant timestamptz := v_now - interval '20 seconds';
  v_gap constant timestamptz := v_now - interval '5 seconds';
  v_since timestamptz;
BEGIN
  INSERT INTO servers AS s (id, present_since, seen_at, cells) VALUES (p_server_id, v_now, v_now, coalesce(p_cells, '[]'))
    ON CONFLICT (id) DO UPDATE SET
      present_since = CASE WHEN s.seen_at < v_gap THEN v_now ELSE s.present_since END,
      seen_at = v_now,
      cells = coalesce(p_cells, s.cells)
    RETURNING present_since INTO v_since;
  IF v_since < v_lost THEN
    DELETE FROM servers s WHERE s.seen_at < v_lost;
  END IF;
  clock := clock_timestamp();
  RETURN NEXT;
END
$$;
