-- A TypeID as servers create them: the time, the version and the variant of a UUIDv7, random bits, and the lane.
CREATE OR REPLACE FUNCTION event_id(p_lane smallint, p_at timestamptz) RETURNS text
  LANGUAGE plpgsql
AS $$
DECLARE
  c_digits constant text := '0123456789abcdefghjkmnpqrstvwxyz';
  v_ms constant bigint := floor(extract(epoch FROM p_at) * 1000);
  -- Random digits: two of the 64 of base64 become one of these 32. The ninth and the eleventh contain the version and variant of the UUID.
  v_random constant text := translate(encode(uuid_send(gen_random_uuid()), 'base64'),
    'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/', c_digits || c_digits);
  v_id text := 'evt_';
BEGIN
  FOR i IN REVERSE 9..0 LOOP
    v_id := v_id || substr(c_digits, (v_ms >> 5 * i & 31)::integer + 1, 1);
  END LOOP;
  -- 0111 and a random bit; ten random bits; a random bit, 10 and two random bits; fifty random bits; the lane.
  RETURN v_id || substr('ef', floor(random() * 2)::integer + 1, 1) || left(v_random, 2)
    || substr('89abrstv', floor(random() * 8)::integer + 1, 1) || substr(v_random, 12, 10)
    || substr(c_digits, (p_lane >> 5 & 31) + 1, 1) || substr(c_digits, (p_lane & 31) + 1, 1);
END
$$;
