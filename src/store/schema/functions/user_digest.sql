-- What stands for an end user in all tables but end_users: 128 bits of a digest with the salt of the account. Without the salt, nobody can
-- find the name by trying names.
CREATE OR REPLACE FUNCTION user_digest(p_salt bytea, p_name text) RETURNS text
  LANGUAGE sql STABLE PARALLEL SAFE
  RETURN CASE p_name WHEN '' THEN '' ELSE 'user_' || left(encode(sha256(p_salt || convert_to(p_name, 'UTF8')), 'hex'), 32) END;
