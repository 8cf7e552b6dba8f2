-- What deliveries to a webhook are signed with: its secret, and for a time those from before the last rotation, separated by spaces.
CREATE OR REPLACE FUNCTION secrets_of_webhook(p_secret text, p_previous text, p_until timestamptz) RETURNS text
  LANGUAGE sql
AS $$
  SELECT concat_ws(' ', p_secret, CASE WHEN p_until > clock_timestamp() THEN p_previous END)
$$;
