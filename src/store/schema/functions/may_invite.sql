-- Whether the creator of an invitation may invite with this role now: an owner of the account, or an operator whose role covers it.
CREATE OR REPLACE FUNCTION may_invite(p_lane smallint, p_account_id text, p_created_by text, p_role member_role) RETURNS boolean
  LANGUAGE sql STABLE
  RETURN p_created_by = 'break-glass'
    OR EXISTS (SELECT 1 FROM members m
      WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_created_by AND m.role = 'owner')
    OR EXISTS (SELECT 1 FROM operators o
      WHERE o.id = p_created_by AND o.revoked_at IS NULL AND o.role >= CASE p_role
        WHEN 'owner' THEN 'admin' WHEN 'billing' THEN 'finance' ELSE 'support' END::operator_role);
