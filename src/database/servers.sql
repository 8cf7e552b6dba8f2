-- Servers and the database: heartbeats, figures of the running service, and its state.

-- The number of the newest table migration, the release that migrated last, and the oldest release whose servers work
-- with this schema.
CREATE OR REPLACE FUNCTION schema_version() RETURNS TABLE (version integer, release text, oldest_release text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT (SELECT max(m.version) FROM migrations m), r.release, r.oldest_release
    FROM releases r ORDER BY r.applied_at DESC LIMIT 1
$$;

-- Fails if the database accepts no writes, and returns its clock. A full disk refuses only writes that need space, so a probe
-- adds a page. A row of the last second counts as well. Rows are counted, because Citus keeps the bytes in another table.
CREATE OR REPLACE FUNCTION probe_writes() RETURNS TABLE (clock timestamptz)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  c_now constant timestamptz := clock_timestamp();
  v_rows integer;
BEGIN
  IF NOT EXISTS (SELECT 1 FROM write_probes p WHERE p.at > c_now - interval '900 milliseconds' AND p.at <= c_now) THEN
    v_rows := (SELECT count(*) FROM write_probes);
    IF v_rows >= 64 THEN
      BEGIN
        -- A dump reads the table for as long as it runs.
        LOCK TABLE write_probes IN ACCESS EXCLUSIVE MODE NOWAIT;
        TRUNCATE write_probes;
        v_rows := 0;
      EXCEPTION WHEN lock_not_available THEN
        NULL;
      END;
    END IF;
    IF v_rows < 3600 THEN
      INSERT INTO write_probes VALUES (c_now, repeat('x', 450));
    ELSE
      -- A dump has run for an hour: the table must not grow further.
      UPDATE write_probes p SET at = c_now WHERE p.at = (SELECT min(o.at) FROM write_probes o);
    END IF;
  END IF;
  clock := clock_timestamp();
  RETURN NEXT;
END
$$;

-- Registers the server and returns the database's clock. Removes servers without a heartbeat for 20 s, unless those of this
-- server had a gap too: the cause may have delayed all. p_cells are the names of the cells that it would use; NULL leaves them
-- unchanged.
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

-- Removes a server that stops, whose remaining holds are then abandoned; all servers for one that has the database alone (NULL).
-- null: p_server_id
CREATE OR REPLACE FUNCTION remove_servers(p_server_id text) RETURNS void
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  DELETE FROM servers s WHERE p_server_id IS NULL OR s.id = p_server_id
$$;

-- How many servers run, and what their generations hold.
CREATE OR REPLACE FUNCTION service_figures() RETURNS TABLE (servers bigint, generations bigint, held_micros bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT (SELECT count(*) FROM servers s WHERE s.seen_at > statement_timestamp() - interval '20 seconds'),
         count(*), coalesce(sum(h.amount_micros), 0)::bigint
  FROM holds h WHERE h.expires_at > statement_timestamp()
    AND NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = h.lane AND NOT l.is_owned)
$$;

-- The number and the sum of the open holds of all servers, and the number of expired holds.
CREATE OR REPLACE FUNCTION hold_figures() RETURNS TABLE (holds bigint, held_micros bigint, expired bigint)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT count(*) FILTER (WHERE NOT h.is_expired),
         coalesce(sum(h.amount_micros) FILTER (WHERE NOT h.is_expired), 0)::bigint,
         count(*) FILTER (WHERE h.is_expired)
  FROM (SELECT i.amount_micros, i.expires_at <= statement_timestamp() AS is_expired FROM holds i
        WHERE NOT EXISTS (SELECT 1 FROM lanes l WHERE l.lane = i.lane AND NOT l.is_owned)) h
$$;
