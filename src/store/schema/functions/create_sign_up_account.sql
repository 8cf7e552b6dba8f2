-- Creates the account of a sign-up with its owner and the starting credit, which p_creditor posts. If the account exists, changes nothing:
-- the credit is that of the first call, and who was removed from the account returns only by an invitation. Returns whether the
-- person is a member.
CREATE OR REPLACE FUNCTION create_sign_up_account(
  p_caller caller, p_lane smallint, p_id text, p_name text, p_plan text, p_email text, p_creditor caller, p_entry_id text, p_month integer,
  p_credit_micros bigint, p_expires_at timestamptz
) RETURNS TABLE (is_member boolean)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  PERFORM 1 FROM accounts a WHERE a.lane = p_lane AND a.id = p_id;
  IF NOT FOUND THEN
    PERFORM create_account(p_caller, p_lane, p_id, p_name, p_plan, NULL, p_email, NULL);
    PERFORM add_member(p_lane, p_id, p_caller.id, p_email, 'owner', 'sign-up');
    IF p_credit_micros > 0 THEN
      PERFORM move_balance(p_creditor, p_lane, p_id, p_entry_id, p_month, 'credit', p_credit_micros, 'Starting credit', 'sign-up',
        p_expires_at, true);
    END IF;
  END IF;
  RETURN QUERY SELECT EXISTS (
    SELECT 1 FROM members m WHERE m.lane = p_lane AND m.account_id = p_id AND m.person_id = p_caller.id);
END
$$;
