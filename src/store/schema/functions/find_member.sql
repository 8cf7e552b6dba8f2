-- What a person may do in an account, and what calls read of the account. The address is kept up to date. Nothing if the person is not a
-- member. With a NULL person, the account for an operator who views its page.
CREATE OR REPLACE FUNCTION find_member(p_lane smallint, p_account_id text, p_person_id text, p_email text)
  RETURNS TABLE (role text, name text, plan text, balance_micros bigint, is_suspended boolean, price_list_version integer)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
BEGIN
  PERFORM require_lane(p_lane);
  UPDATE members m SET email = p_email
    WHERE m.lane = p_lane AND m.account_id = p_account_id AND m.person_id = p_person_id AND m.email <> p_email;
  RETURN QUERY SELECT coalesce(m.role, 'viewer')::text, a.name, a.plan, a.balance_micros, a.suspended_at IS NOT NULL, a.price_list_version
    FROM accounts a LEFT JOIN members m ON m.lane = a.lane AND m.account_id = a.id AND m.person_id = p_person_id
    WHERE a.lane = p_lane AND a.id = p_account_id AND (m.role IS NOT NULL OR p_person_id IS NULL);
END
$$;
