-- Stores the shared data of the first cell, unless a later version was stored. Operators are only compared with those who make
-- changes here: they sign in at the first cell.
CREATE OR REPLACE FUNCTION copy_shared_data(p_version bigint, p_plans text, p_limits text, p_operators text, p_prices text, p_webhooks text)
  RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  UPDATE shared_data SET version = p_version WHERE version < p_version;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  INSERT INTO plans AS p SELECT n.* FROM json_populate_recordset(NULL::plans, p_plans::json) n
    ON CONFLICT ON CONSTRAINT plans_pkey DO UPDATE
      SET rpm = excluded.rpm, max_active_keys = excluded.max_active_keys,
          max_keys_created_per_hour = excluded.max_keys_created_per_hour;
  DELETE FROM limits l WHERE l.lane = no_lane()
    AND NOT EXISTS (SELECT 1 FROM json_populate_recordset(NULL::limits, p_limits::json) n WHERE n.id = l.id);
  INSERT INTO limits AS l SELECT n.* FROM json_populate_recordset(NULL::limits, p_limits::json) n
    ON CONFLICT ON CONSTRAINT limits_pkey DO UPDATE SET amount = excluded.amount,
      temporary_amount = excluded.temporary_amount, temporary_until = excluded.temporary_until;
  -- The names and addresses of revoked operators can be used again.
  UPDATE operators o SET role = n.role, revoked_at = n.revoked_at
    FROM json_populate_recordset(NULL::operators, p_operators::json) n
    WHERE o.id = n.id AND (o.role, o.revoked_at) IS DISTINCT FROM (n.role, n.revoked_at);
  INSERT INTO operators (id, name, role, fingerprint, created_at, revoked_at)
    SELECT n.id, n.name, n.role, n.fingerprint, n.created_at, n.revoked_at
    FROM json_populate_recordset(NULL::operators, p_operators::json) n
    ON CONFLICT ON CONSTRAINT operators_pkey DO NOTHING;
  DELETE FROM webhooks w WHERE w.lane = no_lane()
    AND NOT EXISTS (SELECT 1 FROM json_populate_recordset(NULL::webhooks, p_webhooks::json) n WHERE n.id = w.id);
  PERFORM restart_queues(no_lane(), ARRAY(SELECT w.id FROM webhooks w
    JOIN json_populate_recordset(NULL::webhooks, p_webhooks::json) n ON n.id = w.id
    WHERE w.lane = no_lane() AND w.revision <> n.revision));
  INSERT INTO webhooks AS w SELECT n.* FROM json_populate_recordset(NULL::webhooks, p_webhooks::json) n
    ON CONFLICT ON CONSTRAINT webhooks_pkey DO UPDATE SET url = excluded.url, description = excluded.description,
      types = excluded.types, state = excluded.state, disabled_reason = excluded.disabled_reason, enabled_at = excluded.enabled_at,
      revision = excluded.revision,
      secret = excluded.secret, previous_secrets = excluded.previous_secrets, previous_expires_at = excluded.previous_expires_at;
  INSERT INTO price_versions SELECT n.* FROM json_populate_recordset(NULL::price_versions, p_prices::json) n
    ON CONFLICT ON CONSTRAINT price_versions_pkey DO NOTHING;
END
$$;
