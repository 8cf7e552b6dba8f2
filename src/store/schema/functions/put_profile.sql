-- Sets the given fields of an account's profile. NULL leaves a field unchanged; an empty external id means none.
CREATE OR REPLACE FUNCTION put_profile(
  p_lane smallint, p_id text, p_external_id text, p_email text, p_notes text
) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_external_id IS NULL AND p_email IS NULL AND p_notes IS NULL THEN
    RETURN;
  END IF;
  INSERT INTO account_profiles AS p (lane, account_id, external_id, email, notes)
    VALUES (p_lane, p_id, nullif(p_external_id, ''), coalesce(p_email, ''), coalesce(p_notes, ''))
    ON CONFLICT ON CONSTRAINT account_profiles_pkey DO UPDATE SET
      external_id = CASE WHEN p_external_id IS NULL THEN p.external_id ELSE nullif(p_external_id, '') END,
      email = coalesce(p_email, p.email), notes = coalesce(p_notes, p.notes);
EXCEPTION WHEN unique_violation THEN
  PERFORM refuse('invalid_argument', 'is the external id of another account', '{"field":"external_id"}');
END
$$;
