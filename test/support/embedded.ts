import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Passwords, passwordPath } from "../../src/database/embedded/password.ts";

type Server = { readonly socketDir: string; passwordOf(role: string): string };

/** Driver options to log in to an embedded database. */
export function loginTo(server: Server, username = "postgres") {
  const password = server.passwordOf(username);
  return { host: server.socketDir, port: 5432, username, password, database: "postgres" };
}

/** Driver options for the database of a server process, found by its data folder. */
export function loginIn(dataDir: string, username = "postgres") {
  const passwords = new Passwords(readFileSync(passwordPath(dataDir), "utf8").trim());
  return loginTo({ socketDir: join(dataDir, "run"), passwordOf: (role) => passwords.of(role) }, username);
}

/** A value of DATABASE_URL. */
export function urlTo(server: Server, database = "postgres"): string {
  const host = encodeURIComponent(server.socketDir);
  return `postgres:///${database}?host=${host}&user=postgres&password=${server.passwordOf("postgres")}`;
}
