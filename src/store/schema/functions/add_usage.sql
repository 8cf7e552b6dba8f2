-- Adds generations to the sums of the current quarter of an hour. p_has_users: whether one names an end user. The
-- caller has just written the rows and holds the locks of their lanes.
CREATE OR REPLACE FUNCTION add_usage(p_rows ledger[], p_now timestamptz, p_has_users boolean) RETURNS void
  LANGUAGE plpgsql
AS $$
DECLARE
  c_quarter constant integer := floor(extract(epoch FROM p_now) / 900);
  c_day constant integer := c_quarter / 96;
BEGIN
  IF p_has_users THEN
    PERFORM name_users(p_rows, c_day);
  END IF;
  -- A user without a name of its own on this day counts for "(other)".
  INSERT INTO usage_quarters AS u
  SELECT r.lane, r.account_id, c_quarter, r.key_id, r.model,
         CASE WHEN r.user_id = '' OR EXISTS (SELECT 1 FROM usage_users n WHERE n.lane = r.lane
           AND n.account_id = r.account_id AND n.day = c_day AND n.user_id = r.user_id) THEN r.user_id ELSE '(other)' END,
         r.price_version, count(*), sum(r.input), sum(r.cached_input), sum(r.cache_write), sum(r.output),
         sum(r.reasoning), sum(r.images), sum(r.image_tokens), -sum(r.amount_micros)
  FROM unnest(p_rows) r WHERE r.kind = 'generation'
  GROUP BY 1, 2, 4, 5, 6, 7
  ON CONFLICT ON CONSTRAINT usage_quarters_pkey DO UPDATE SET
    requests = u.requests + excluded.requests, input = u.input + excluded.input,
    cached_input = u.cached_input + excluded.cached_input, cache_write = u.cache_write + excluded.cache_write,
    output = u.output + excluded.output, reasoning = u.reasoning + excluded.reasoning,
    images = u.images + excluded.images, image_tokens = u.image_tokens + excluded.image_tokens,
    cost_micros = u.cost_micros + excluded.cost_micros;
END
$$;
