-- The mailbox of an e-mail address, in which one person can have any number of addresses: with "+tag", with a dot after the domain, and at
-- Gmail with dots in the name and with two domains.
CREATE OR REPLACE FUNCTION mailbox_of(p_email text) RETURNS text
  LANGUAGE plpgsql IMMUTABLE
AS $$
DECLARE
  v_email constant text := regexp_replace(lower(p_email COLLATE "C"), '\.+$', '');
  v_name constant text := regexp_replace(v_email, '(\+.*)?@[^@]*$', '');
  v_domain constant text := regexp_replace(v_email, '^.*@', '');
BEGIN
  IF v_domain IN ('gmail.com', 'googlemail.com') THEN
    RETURN replace(v_name, '.', '') || '@gmail.com';
  END IF;
  RETURN v_name || '@' || v_domain;
END
$$;
