#!/bin/sh
# PostgreSQL runs this once, on an empty database: the login of the server, a member of vx_app. `vx migrate` leaves
# an existing vx_app as it is.
set -eu
psql --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" --set ON_ERROR_STOP=1 \
  --set password="$(cat /run/secrets/server_password)" <<'SQL'
CREATE ROLE vx_app;
CREATE ROLE vx_server LOGIN PASSWORD :'password';
GRANT vx_app TO vx_server;
SQL
