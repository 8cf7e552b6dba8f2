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
