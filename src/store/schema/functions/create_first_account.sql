-- Creates an account with a credit and a key, all or nothing, if the database has no account. When several servers start
-- at once, one of them creates it. The action of the server is logged as one event for each of the three. The account gets the
-- person p_owner_id as its owner, unless it is NULL: an identity of the server itself. Returns whether this call did.
CREATE OR REPLACE FUNCTION create_first_account(
  p_caller caller, p_lane smallint, p_id text, p_name text, p_plan text, p_entry_id text, p_month integer, p_amount_micros bigint,
  p_reason text, p_key_id text, p_fingerprint bytea, p_scopes smallint, p_visible_start text, p_visible_end text,
  p_owner_id text, p_owner_issuer text, p_owner_subject text, p_owner_email text
) RETURNS TABLE (created boolean)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_caller caller := p_caller;
BEGIN
  LOCK TABLE accounts IN SHARE ROW EXCLUSIVE MODE;
  PERFORM prove(p_caller, p_lane);
  created := NOT EXISTS (SELECT 1 FROM accounts);
  IF created THEN
    v_caller.method := 'CreateAccount';
    PERFORM create_account(v_caller, p_lane, p_id, p_name, p_plan);
    v_caller.method := 'CreditAccount';
    PERFORM move_balance(v_caller, p_lane, p_id, p_entry_id, p_month, 'credit', p_amount_micros, p_reason, p_reason);
    v_caller.method := 'CreateKey';
    PERFORM create_key(v_caller, p_lane, p_id, p_key_id, p_fingerprint, p_name, p_plan, p_scopes, p_scopes, NULL, NULL, p_visible_start,
      p_visible_end);
    IF p_owner_id IS NOT NULL THEN
      INSERT INTO people (id, issuer, subject, email, created_at, signed_in_at, account_id)
        VALUES (p_owner_id, p_owner_issuer, p_owner_subject, p_owner_email, clock_timestamp(), clock_timestamp(), p_id);
      INSERT INTO person_accounts (person_id, account_id, link_id) VALUES (p_owner_id, p_id, 'sign-up');
      PERFORM add_member(p_lane, p_id, p_owner_id, p_owner_email, 'owner', 'sign-up');
    END IF;
  END IF;
  RETURN NEXT;
END
$$;
