-- The events key.expiring that a new expiry is too near for: 7 if it is within 7 days, 1 if it is within a day, or NULL.
CREATE OR REPLACE FUNCTION days_warned(p_now timestamptz, p_expires_at timestamptz) RETURNS smallint
  LANGUAGE sql STABLE
  RETURN CASE WHEN p_expires_at <= p_now + interval '1 day' THEN 1 WHEN p_expires_at <= p_now + interval '7 days' THEN 7 END::smallint;
