-- Webhooks, the newest first: the one with the id, or all of the account. An empty account for any account, with an id, or for
-- those of operators.
CREATE OR REPLACE FUNCTION view_webhooks(p_lane smallint, p_account_id text, p_id text) RETURNS SETOF webhook_view
  LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  RETURN QUERY SELECT w.id, w.account_id, w.url, w.description, array_to_string(w.types, ','), w.state::text, w.disabled_reason,
      w.created_at, CASE WHEN w.previous_expires_at > clock_timestamp() THEN w.previous_expires_at END, NULL::text
    FROM webhooks w
    WHERE w.lane = p_lane AND (p_account_id = '' AND p_id <> '' OR w.account_id = p_account_id) AND p_id IN ('', w.id)
    ORDER BY w.id COLLATE "C" DESC;
END
$$;
