-- A TypeID as servers create them: the time, the version and the variant of a UUIDv7, random bits, and the lane.
CREATE OR REPLACE FUNCTION event_id(p_lane smallint, p_at timestamptz) RETURNS text
  LANGUAGE plpgsql
AS $$
DECLARE
  v_ms constant bigint := floor(extract(epoch FROM p_at) * 1000);
  v_id text := 'evt_';
  v_digit integer;
BEGIN
  FOR i IN 0..25 LOOP
    v_digit := CASE
      WHEN i < 10 THEN v_ms >> 45 - 5 * i
      -- 0111 and a random bit.
      WHEN i = 10 THEN 14 + floor(random() * 2)::bigint
      -- A random bit, 10 and two random bits.
      WHEN i = 13 THEN floor(random() * 2)::bigint << 4 | 8 | floor(random() * 4)::bigint
      WHEN i < 24 THEN floor(random() * 32)::bigint
      ELSE p_lane::bigint >> 125 - 5 * i
    END & 31;
    v_id := v_id || substr('0123456789abcdefghjkmnpqrstvwxyz', v_digit + 1, 1);
  END LOOP;
  RETURN v_id;
END
$$;
