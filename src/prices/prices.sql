-- Prices: the versions of models and of accounts, and what usage costs.

-- The version of each model's prices. Prices that differ from the latest version become a new version.
CREATE OR REPLACE FUNCTION register_prices(p_items price_item[]) RETURNS TABLE (model text, version integer)
  LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT
AS $$
DECLARE
  r price_item;
  v_latest price_versions;
  v_new price_versions;
  v_is_changed boolean := false;
BEGIN
  -- If several servers load the same prices at once, only one appends the version.
  LOCK TABLE price_versions IN SHARE ROW EXCLUSIVE MODE;
  FOREACH r IN ARRAY p_items LOOP
    SELECT v.* INTO v_latest FROM price_versions v WHERE v.model = r.model ORDER BY v.version DESC LIMIT 1;
    IF NOT FOUND OR v_latest.rates <> r.rates THEN
      v_new := ROW(r.model, coalesce(v_latest.version, 0) + 1, r.rates, greatest(clock_timestamp(), v_latest.effective_from),
        NULL)::price_versions;
      v_new.hash := price_hash(coalesce(v_latest.hash, '\x'), v_new);
      INSERT INTO price_versions SELECT v_new.*;
      IF v_latest.version > 0 THEN
        PERFORM write_event(1024::smallint, '', 'price.changed', jsonb_build_object('model', r.model, 'version', v_new.version,
          'prices', prices_json(r.rates), 'previous', prices_json(v_latest.rates)));
      END IF;
      v_latest := v_new;
      v_is_changed := true;
    END IF;
    model := r.model;
    version := v_latest.version;
    RETURN NEXT;
  END LOOP;
  IF v_is_changed THEN
    PERFORM change_shared_data();
  END IF;
END
$$;

-- The hash of a version of prices: sha256(hash of the previous version ‖ fields).
CREATE OR REPLACE FUNCTION price_hash(p_before bytea, p_row price_versions) RETURNS bytea
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN sha256(p_before || convert_to(concat_ws(':', p_row.version, p_row.rates,
    (extract(epoch FROM p_row.effective_from) * 1000000)::bigint, p_row.model), 'UTF8'));

-- A page of the prices of a model, latest first. A p_before of 0 means the first page.
CREATE OR REPLACE FUNCTION list_prices(p_model text, p_before integer, p_limit integer)
  RETURNS TABLE (model text, version integer, prices text, effective_from timestamptz)
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT v.model, v.version, prices_json(v.rates)::text, v.effective_from FROM price_versions v
    WHERE v.model = p_model AND v.version < CASE p_before WHEN 0 THEN 2147483647 ELSE p_before END
    ORDER BY v.version DESC LIMIT p_limit
$$;

-- Appends a version of an account's prices: a discount, prices of a model, or neither to end those before. Returns the version.
-- null: p_discount, p_rates
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

-- The hash of a version of an account's prices: sha256(hash of the previous version ‖ fields).
CREATE OR REPLACE FUNCTION account_price_hash(p_before bytea, p_row account_prices) RETURNS bytea
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN sha256(p_before || convert_to(concat_ws(':', p_row.lane, p_row.account_id, p_row.version,
    coalesce(p_row.discount::text, '-'), coalesce(p_row.rates::text, '-'),
    (extract(epoch FROM p_row.effective_from) * 1000000)::bigint, p_row.model), 'UTF8'));

-- A page of the versions of an account's prices, latest first. A p_before of 0 means the first page.
CREATE OR REPLACE FUNCTION list_account_prices(p_lane smallint, p_account_id text, p_before integer, p_limit integer)
  RETURNS SETOF account_price_view
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT a.version, a.model, a.discount, prices_json(a.rates)::text, a.effective_from FROM account_prices a
    WHERE a.lane = p_lane AND a.account_id = p_account_id AND a.version < CASE p_before WHEN 0 THEN 2147483647 ELSE p_before END
    ORDER BY a.version DESC LIMIT p_limit
$$;

-- The prices of an account at a version: the last row of each model, and of all models.
CREATE OR REPLACE FUNCTION get_account_prices(p_lane smallint, p_account_id text, p_version integer)
  RETURNS SETOF account_price_view
  LANGUAGE sql STABLE SECURITY DEFINER SET search_path FROM CURRENT
AS $$
  SELECT l.version, l.model, l.discount, prices_json(l.rates)::text, l.effective_from FROM (
    SELECT DISTINCT ON (a.model) a.* FROM account_prices a
    WHERE a.lane = p_lane AND a.account_id = p_account_id AND a.version <= p_version
    ORDER BY a.model, a.version DESC
  ) l WHERE num_nonnulls(l.discount, l.rates) > 0
$$;

-- Prices as the API writes them. NULL without prices.
CREATE OR REPLACE FUNCTION prices_json(p_rates price_rates[]) RETURNS jsonb
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN to_jsonb(p_rates[1]) - 'above_input_tokens' || CASE cardinality(p_rates) WHEN 1 THEN '{}'
    ELSE jsonb_build_object('tiers', to_jsonb(p_rates[2:])) END;

-- What a generation costs at the prices of a tier after a discount, rounded up once after all tokens are added.
CREATE OR REPLACE FUNCTION charge_of(
  p_input integer, p_cached_input integer, p_cache_write integer, p_cache_write_1h integer, p_output integer, p_reasoning integer,
  p_images integer, p_rates price_rates, p_discount integer
) RETURNS numeric
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN ceil((p_input::numeric * discounted(p_rates.input, p_discount)
      + p_cached_input::numeric * discounted(p_rates.cached_input, p_discount)
      + (p_cache_write - p_cache_write_1h)::numeric * discounted(p_rates.cache_write, p_discount)
      + p_cache_write_1h::numeric * discounted(p_rates.cache_write_1h, p_discount)
      + p_output::numeric * discounted(p_rates.output, p_discount)
      + p_reasoning::numeric * discounted(p_rates.reasoning, p_discount)) / 1000000)
    + p_images::numeric * discounted(p_rates.image, p_discount) + discounted(p_rates.request, p_discount);
