-- Another cell owns a lane of the statement. The server sends it there.
CREATE OR REPLACE FUNCTION raise_lane_moved() RETURNS void
  LANGUAGE plpgsql
AS $$
BEGIN
  RAISE EXCEPTION USING ERRCODE = 'VX001', MESSAGE = 'lane_moved';
END
$$;
