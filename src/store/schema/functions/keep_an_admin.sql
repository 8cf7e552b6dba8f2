-- Refuses to take the role admin from the last operator that has it. The caller holds the lock of the table.
CREATE OR REPLACE FUNCTION keep_an_admin(p_role operator_role) RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  IF p_role = 'admin' AND NOT EXISTS (SELECT 1 FROM operators WHERE role = 'admin' AND revoked_at IS NULL) THEN
    PERFORM refuse('last_admin');
  END IF;
END
$$;
