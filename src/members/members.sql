-- Members of accounts, invitations and sign-ups, and the accounts in which a person looks.

-- What a person may do in an account, and what calls read of the account. The address is kept up to date. Nothing if the person
-- is not a member. With a NULL person, the account for an operator who views its page.
-- null: p_person_id
-- role: viewer | developer | billing | owner
CREATE OR REPLACE FUNCTION find_member(p_lane smallint, p_account_id text, p_person_id text, p_email text)
  RETURNS TABLE (role text, name text, plan text, balance_micros bigint, is_suspended boolean, price_list_version integer)
  LANGUAGE sql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT require_lane(p_lane);
  UPDATE members m SET email = p_email
    WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_person_id AND m.email <> p_email;
  SELECT coalesce(m.role, 'viewer')::text, a.name, a.plan, a.balance_micros, a.suspended_at IS NOT NULL, a.price_list_version
    FROM accounts a LEFT JOIN members m ON m.lane = a.lane AND m.account_id = a.id AND m.person_id = p_person_id
    WHERE a.lane = p_lane AND a.id = p_account_id AND (m.role IS NOT NULL OR p_person_id IS NULL);
$$;

-- The members of an account, in the order in which they joined.
-- role: viewer | developer | billing | owner
CREATE OR REPLACE FUNCTION list_members(p_lane smallint, p_account_id text)
  RETURNS TABLE (person_id text, email text, role text, joined_at timestamptz, link_id text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT m.person_id, m.email, m.role::text, m.joined_at, m.link_id FROM members m
    WHERE m.lane = p_lane AND m.account_id = p_account_id ORDER BY m.joined_at, m.person_id
$$;

-- Changes the role of a member.
-- role: viewer | developer | billing | owner
CREATE OR REPLACE FUNCTION set_member_role(p_caller caller, p_lane smallint, p_account_id text, p_person_id text, p_role text)
  RETURNS TABLE (person_id text, email text, role text, joined_at timestamptz)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  PERFORM require_account(p_lane, p_account_id);
  IF p_role <> 'owner' THEN
    PERFORM take_owner_role(p_lane, p_account_id, p_person_id);
  END IF;
  IF p_role NOT IN ('developer', 'owner') THEN
    PERFORM revoke_playground_key(p_lane, p_account_id, p_person_id);
  END IF;
  PERFORM log_change(p_caller, p_lane, p_person_id, p_account_id);
  RETURN QUERY UPDATE members m SET role = p_role::member_role
    WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_person_id
    RETURNING m.person_id, m.email, m.role::text, m.joined_at;
  PERFORM refuse('not_found', 'There is no such member.') WHERE NOT FOUND;
END
$$;

-- Removes a member, the key of the playground, the invitations that the person created, and those for the address of the person.
-- Does nothing if the person is not a member. Returns the link of the member, which the first cell deletes: in this transaction
-- if it has the account.
CREATE OR REPLACE FUNCTION remove_member(p_caller caller, p_lane smallint, p_account_id text, p_person_id text)
  RETURNS TABLE (link_id text)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_member members;
BEGIN
  PERFORM require_account(p_lane, p_account_id);
  SELECT m.* INTO v_member FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_person_id;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  PERFORM revoke_playground_key(p_lane, p_account_id, p_person_id);
  PERFORM take_owner_role(p_lane, p_account_id, p_person_id);
  PERFORM write_event(p_lane, p_account_id, 'member.removed', jsonb_build_object('person_id', p_person_id));
  PERFORM log_change(p_caller, p_lane, p_person_id, p_account_id);
  DELETE FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_person_id;
  DELETE FROM invitations i WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.email <> ''
    AND mailbox_of(i.email) = mailbox_of(v_member.email);
  PERFORM unlink_person(p_person_id, p_account_id, v_member.link_id, false);
  RETURN QUERY SELECT v_member.link_id;
END
$$;

-- Prepares a change that takes the role of an owner: refuses it for the last one, and deletes the invitations that the person
-- made, because only owners invite. The caller has locked the account.
CREATE OR REPLACE FUNCTION take_owner_role(p_lane smallint, p_account_id text, p_person_id text) RETURNS void
  LANGUAGE sql
AS $$
  SELECT refuse('last_owner') WHERE ARRAY[p_person_id] = ARRAY(
    SELECT m.person_id FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.role = 'owner');
  DELETE FROM invitations i WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.created_by = p_person_id;
$$;

-- Creates an invitation to an account.
CREATE OR REPLACE FUNCTION create_invitation(
  p_caller caller, p_lane smallint, p_account_id text, p_id text, p_fingerprint bytea, p_role text, p_email text
) RETURNS SETOF invitations
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  c_max_invitations constant integer := 50;
  v_now constant timestamptz := clock_timestamp();
BEGIN
  PERFORM require_open_account(p_lane, p_account_id);
  PERFORM refuse('insufficient_role',
    'The role support invites viewers and developers, finance also members with the role billing, and admin also owners.')
    WHERE NOT may_invite(p_lane, p_account_id, p_caller.id, p_role::member_role);
  DELETE FROM invitations i WHERE i.lane = p_lane AND i.account_id = p_account_id
    AND (i.expires_at <= v_now OR NOT may_invite(p_lane, p_account_id, i.created_by, i.role));
  PERFORM refuse('member_limit_reached', format('An account can have at most %s open invitations.', c_max_invitations))
    WHERE (SELECT count(*) FROM invitations i WHERE i.lane = p_lane AND i.account_id = p_account_id) >= c_max_invitations;
  PERFORM write_event(p_lane, p_account_id, 'member.invited', jsonb_build_object('invitation_id', p_id, 'role', p_role));
  PERFORM log_change(p_caller, p_lane, p_id, p_account_id);
  RETURN QUERY INSERT INTO invitations (lane, id, account_id, fingerprint, role, email, created_by, created_at, expires_at)
    VALUES (p_lane, p_id, p_account_id, p_fingerprint, p_role::member_role, p_email, (p_caller).id, v_now,
      v_now + interval '7 days') RETURNING *;
END
$$;

-- Whether the creator of an invitation may invite with this role now: an owner of the account, or an operator whose role covers
-- it.
CREATE OR REPLACE FUNCTION may_invite(p_lane smallint, p_account_id text, p_created_by text, p_role member_role) RETURNS boolean
  LANGUAGE sql STABLE
  RETURN p_created_by = 'break-glass'
    OR EXISTS (SELECT 1 FROM members m
      WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_created_by AND m.role = 'owner')
    OR EXISTS (SELECT 1 FROM operators o
      WHERE o.id = p_created_by AND o.revoked_at IS NULL AND o.role >= CASE p_role
        WHEN 'owner' THEN 'admin' WHEN 'billing' THEN 'finance' ELSE 'support' END::operator_role);

-- The open invitations of an account, the newest first.
CREATE OR REPLACE FUNCTION list_invitations(p_lane smallint, p_account_id text) RETURNS SETOF invitations
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT i.* FROM invitations i
    WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.expires_at > clock_timestamp()
      AND may_invite(p_lane, p_account_id, i.created_by, i.role)
    ORDER BY i.created_at DESC
$$;

-- Deletes an invitation of an account. An unknown one is ignored.
CREATE OR REPLACE FUNCTION delete_invitation(p_caller caller, p_lane smallint, p_account_id text, p_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM prove(p_caller, p_lane);
  DELETE FROM invitations i WHERE i.lane = p_lane AND i.account_id = p_account_id AND i.id = p_id;
  IF FOUND THEN
    PERFORM log_change(p_caller, p_lane, p_id, p_account_id);
  END IF;
END
$$;

-- The account of an invitation that the person can use; nothing otherwise.
CREATE OR REPLACE FUNCTION read_invitation(p_lane smallint, p_id text, p_fingerprint bytea, p_email text)
  RETURNS TABLE (account_id text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT i.account_id FROM invitations i
    WHERE i.lane = p_lane AND i.id = p_id AND i.fingerprint = p_fingerprint AND i.expires_at > clock_timestamp()
      AND lower(i.email COLLATE "C") IN ('', lower(p_email COLLATE "C"))
      AND may_invite(p_lane, i.account_id, i.created_by, i.role)
$$;

-- Uses an invitation up and makes the caller a member with its role, with the link that was stored before. Returns whether the
-- caller has joined: somebody who is a member already keeps the invitation.
CREATE OR REPLACE FUNCTION accept_invitation(
  p_caller caller, p_lane smallint, p_account_id text, p_id text, p_fingerprint bytea, p_email text, p_link_id text
) RETURNS TABLE (has_joined boolean)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_invitation invitations;
BEGIN
  PERFORM require_open_account(p_lane, p_account_id);
  PERFORM 1 FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_caller.id;
  IF FOUND THEN
    RETURN QUERY SELECT false;
    RETURN;
  END IF;
  DELETE FROM invitations i WHERE i.lane = p_lane AND i.id = p_id AND i.account_id = p_account_id AND i.fingerprint = p_fingerprint
      AND i.expires_at > clock_timestamp() AND lower(i.email COLLATE "C") IN ('', lower(p_email COLLATE "C"))
    RETURNING i.* INTO v_invitation;
  -- An operator who created it keeps the right until the member is committed. The lane keeps that of an owner.
  PERFORM 1 FROM operators o WHERE o.id = v_invitation.created_by FOR SHARE;
  PERFORM refuse('invalid_invitation')
    WHERE v_invitation.id IS NULL OR NOT may_invite(p_lane, p_account_id, v_invitation.created_by, v_invitation.role);
  PERFORM add_member(p_lane, p_account_id, p_caller.id, p_email, v_invitation.role, p_link_id);
  PERFORM log_change(p_caller, p_lane, p_caller.id, p_account_id);
  RETURN QUERY SELECT true;
END
$$;

-- Makes a person a member of an account. The caller holds the lock of the lane.
CREATE OR REPLACE FUNCTION add_member(
  p_lane smallint, p_account_id text, p_person_id text, p_email text, p_role member_role, p_link_id text
) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  c_max_members constant integer := 100;
BEGIN
  INSERT INTO members (lane, account_id, person_id, email, role, joined_at, link_id)
    VALUES (p_lane, p_account_id, p_person_id, p_email, p_role, clock_timestamp(), p_link_id);
  PERFORM refuse('member_limit_reached', format('An account can have at most %s members.', c_max_members))
    WHERE (SELECT count(*) FROM members m WHERE m.lane = p_lane AND m.account_id = p_account_id) > c_max_members;
  PERFORM write_event(p_lane, p_account_id, 'member.joined', jsonb_build_object('person_id', p_person_id, 'role', p_role));
END
$$;

-- Creates an invitation to sign up. It belongs to no account.
CREATE OR REPLACE FUNCTION create_sign_up_invitation(p_caller caller, p_id text, p_fingerprint bytea, p_email text)
  RETURNS SETOF sign_up_invitations
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller);
  v_now constant timestamptz := clock_timestamp();
BEGIN
  PERFORM log_change(p_caller, no_lane(), p_id, '');
  DELETE FROM sign_up_invitations i WHERE i.expires_at < v_now - interval '30 days';
  RETURN QUERY INSERT INTO sign_up_invitations (id, fingerprint, email, created_by, created_at, expires_at)
    VALUES (p_id, p_fingerprint, p_email, (p_caller).id, v_now, v_now + interval '7 days') RETURNING *;
END
$$;

-- The account for which the caller signs up: p_account_id, or the one that an earlier call chose. It gets the starting credit if
-- neither the identity nor the mailbox was used before. p_invitation_id is used up; void if its creator has not p_inviter_role
-- any more.
-- null: p_invitation_id, p_fingerprint, p_inviter_role
CREATE OR REPLACE FUNCTION claim_sign_up(
  p_caller caller, p_account_id text, p_invitation_id text, p_fingerprint bytea, p_inviter_role text
) RETURNS TABLE (account_id text, gets_credit boolean)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller);
  c_max_sign_ups constant integer := 3;
  v_now constant timestamptz := clock_timestamp();
  v_person people;
  v_inviter text;
  v_digests bytea[];
BEGIN
  SELECT p.* INTO v_person FROM people p WHERE p.id = p_caller.id FOR UPDATE;
  PERFORM refuse('invalid_session') WHERE NOT FOUND;
  v_digests := ARRAY[
    sha256(convert_to(v_person.issuer || E'\n' || v_person.subject, 'UTF8')),
    sha256(convert_to(mailbox_of(v_person.email), 'UTF8'))];
  IF v_person.account_id IS NULL THEN
    IF p_invitation_id IS NOT NULL THEN
      UPDATE sign_up_invitations i SET person_id = p_caller.id
        WHERE i.id = p_invitation_id AND i.fingerprint = p_fingerprint AND i.person_id IS NULL
          AND i.expires_at > v_now AND lower(i.email COLLATE "C") IN ('', lower(v_person.email COLLATE "C"))
        RETURNING i.created_by INTO v_inviter;
      PERFORM 1 FROM operators o
        WHERE o.id = v_inviter AND o.revoked_at IS NULL AND o.role >= p_inviter_role::operator_role FOR SHARE;
      PERFORM refuse('invalid_invitation') WHERE NOT FOUND AND v_inviter IS DISTINCT FROM 'break-glass';
    END IF;
    UPDATE people p SET account_id = p_account_id WHERE p.id = p_caller.id RETURNING p.* INTO v_person;
    PERFORM link_person(p_caller, p_account_id, 'sign-up');
    INSERT INTO starting_credits AS c (digest, account_id, sign_ups)
      SELECT d, p_account_id, ARRAY[v_now] FROM unnest(v_digests) d ORDER BY d
      ON CONFLICT ON CONSTRAINT starting_credits_pkey DO UPDATE
        SET sign_ups = ARRAY(SELECT t FROM unnest(c.sign_ups) t WHERE t > v_now - interval '30 days') || v_now;
    PERFORM refuse('sign_up_refused', format('A person can sign up for at most %s accounts in 30 days.', c_max_sign_ups))
      WHERE EXISTS (SELECT 1 FROM starting_credits c WHERE c.digest = ANY (v_digests) AND cardinality(c.sign_ups) > c_max_sign_ups);
  END IF;
  RETURN QUERY SELECT v_person.account_id, NOT EXISTS (
    SELECT 1 FROM starting_credits c WHERE c.digest = ANY (v_digests) AND c.account_id <> v_person.account_id);
END
$$;

-- The mailbox of an e-mail address, in which one person can have any number of addresses: with "+tag", with a dot after the
-- domain, and at Gmail with dots in the name and with two domains.
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

-- Creates the account of a sign-up with its owner and the starting credit, which p_creditor posts. If it exists, changes nothing:
-- who was removed returns only by an invitation. Returns whether the person is a member.
-- null: p_expires_at
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
    PERFORM create_account(p_caller, p_lane, p_id, p_name, p_plan, jsonb_build_object('email', p_email)::text);
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

-- Notes, before the caller becomes a member of an account, that the account is to be looked in for the person.
CREATE OR REPLACE FUNCTION link_person(p_caller caller, p_account_id text, p_link_id text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller);
  c_max_accounts constant integer := 100;
BEGIN
  -- The lock counts the accounts of a person one after the other.
  PERFORM 1 FROM people p WHERE p.id = p_caller.id FOR UPDATE;
  PERFORM refuse('invalid_session') WHERE NOT FOUND;
  PERFORM refuse('member_limit_reached', format('A person can be a member of at most %s accounts.', c_max_accounts))
    WHERE (SELECT count(DISTINCT a.account_id) FROM person_accounts a
      WHERE a.person_id = p_caller.id AND a.account_id <> p_account_id) >= c_max_accounts;
  INSERT INTO person_accounts (person_id, account_id, link_id) VALUES (p_caller.id, p_account_id, p_link_id);
END
$$;

-- Deletes a link of link_person, after the person stopped being a member, or because the account is closed. Who signed up for the
-- account can sign up for another one.
CREATE OR REPLACE FUNCTION unlink_person(p_person_id text, p_account_id text, p_link_id text, p_is_closed boolean) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  UPDATE people p SET account_id = NULL WHERE p.id = p_person_id AND p.account_id = p_account_id AND p_link_id = 'sign-up';
  DELETE FROM person_accounts a WHERE a.person_id = p_person_id AND a.account_id = p_account_id AND a.link_id = p_link_id;
  IF p_is_closed THEN
    INSERT INTO closed_accounts (person_id, account_id, closed_at)
      SELECT p.id, p_account_id, clock_timestamp() FROM people p WHERE p.id = p_person_id
      ON CONFLICT DO NOTHING;
  END IF;
END
$$;

-- The accounts in which the person can be a member.
CREATE OR REPLACE FUNCTION list_person_accounts(p_person_id text) RETURNS TABLE (account_id text)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT DISTINCT a.account_id FROM person_accounts a WHERE a.person_id = p_person_id ORDER BY a.account_id
$$;

-- The accounts of a person that were closed within 30 days, the last one first.
CREATE OR REPLACE FUNCTION list_closed_accounts(p_person_id text) RETURNS TABLE (account_id text, closed_at timestamptz)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT c.account_id, c.closed_at FROM closed_accounts c
    WHERE c.person_id = p_person_id AND c.closed_at > clock_timestamp() - interval '30 days' ORDER BY c.closed_at DESC
$$;
