-- The exact amount with 2 to 6 decimals, as `formatMicros` writes it.
CREATE OR REPLACE FUNCTION money_text(p_micros bigint) RETURNS text
  LANGUAGE sql IMMUTABLE
AS $$
  SELECT CASE WHEN p_micros < 0 THEN '-' ELSE '' END || '$' || abs(p_micros) / 1000000 || '.'
    || regexp_replace(lpad((abs(p_micros) % 1000000)::text, 6, '0'), '0{1,4}$', '');
$$;
