-- Appends a version of an account's prices: a discount, prices of a model, or neither to end those before. Returns the version.
CREATE OR REPLACE FUNCTION set_account_prices(
  p_caller caller, p_lane smallint, p_account_id text, p_model text, p_discount integer, p_rates price_rates[]
) RETURNS SETOF account_price_view
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  v_proven constant keys := prove(p_caller, p_lane);
  v_account constant accounts := require_open_account(p_lane, p_account_id);
  v_latest account_prices;
  v_new account_prices;
BEGIN
  SELECT a.* INTO v_latest FROM account_prices a
    WHERE a.lane = p_lane AND a.account_id = p_account_id AND a.version = v_account.price_list_version;
  v_new := ROW(p_lane, p_account_id, v_account.price_list_version + 1, p_model, p_discount, p_rates,
    greatest(clock_timestamp(), v_latest.effective_from), NULL)::account_prices;
  v_new.hash := account_price_hash(coalesce(v_latest.hash, '\x'), v_new);
  INSERT INTO account_prices SELECT v_new.*;
  UPDATE accounts SET price_list_version = v_new.version WHERE lane = p_lane AND id = p_account_id;
  PERFORM write_event(p_lane, p_account_id, 'price.changed', jsonb_strip_nulls(jsonb_build_object('model', p_model,
    'version', v_new.version, 'prices', prices_json(p_rates), 'discount_bps', p_discount)));
  PERFORM log_change(p_caller, p_lane, p_account_id, p_account_id);
  RETURN QUERY SELECT * FROM list_account_prices(p_lane, p_account_id, v_new.version + 1, 1);
END
$$;
