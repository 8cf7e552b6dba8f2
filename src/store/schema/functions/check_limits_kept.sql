-- Refuses limits of a key that lack one that it has. p_limits is as in set_limits.
CREATE OR REPLACE FUNCTION check_limits_kept(p_key keys, p_limits json) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  v_missing limits;
BEGIN
  SELECT l.* INTO v_missing FROM limits l
    WHERE l.lane = p_key.lane AND l.owner_id = p_key.id AND NOT EXISTS (
      SELECT 1 FROM json_populate_recordset(NULL::limits, coalesce(nullif(p_limits::text, 'null'), '[]')::json) n
      WHERE (n.metric, n.period, n.model, n.per_user) = (l.metric, l.period, l.model, l.per_user))
    ORDER BY l.id LIMIT 1;
  IF FOUND THEN
    PERFORM refuse('invalid_argument',
      format('must contain %s: a key can add limits to itself and lower them, but not remove them', v_missing.id),
      '{"field":"limits"}');
  END IF;
END
$$;
