-- Whether any limit can apply to a call: of its account, of its key or an ancestor, or of a plan. p_limited_plans are the plans that
-- have limits, NULL for none. Reads only columns of rows that a batch reads anyway.
CREATE OR REPLACE FUNCTION limits_apply(
  p_account_is_limited boolean, p_key_is_limited boolean, p_plan text, p_ancestors text[], p_limited_plans text[]
) RETURNS boolean
  LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN p_account_is_limited OR p_key_is_limited
    OR (p_limited_plans IS NOT NULL AND (p_plan = ANY (p_limited_plans) OR cardinality(p_ancestors) > 0));
