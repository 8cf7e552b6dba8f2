import { spawn } from "node:child_process";
import { chownSync, existsSync, statSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { createTemporaryFolder } from "./temporary-folder.ts";

const folders = [...(process.env.PATH ?? "").split(delimiter), "/usr/sbin"];

/** The path of the program, if it is installed. */
export const pgbouncer = folders.map((folder) => join(folder, "pgbouncer")).find((path) => existsSync(path));

type PgBouncerOptions = {
  readonly mode: "session" | "transaction" | "statement";
  /** The folder of PostgreSQL's socket. */
  readonly socketDir: string;
  /** The superuser's password. PgBouncer itself requires no password. */
  readonly password: string;
};

const READY_MS = 10_000;

/** PgBouncer in front of a PostgreSQL, listening on a unix socket. */
export async function startPgBouncer({ mode, socketDir, password }: PgBouncerOptions) {
  const folder = createTemporaryFolder("pgbouncer");
  const settings = join(folder.path, "pgbouncer.ini");
  const users = join(folder.path, "users.txt");
  writeFileSync(users, `"postgres" "${password}"\n`);
  writeFileSync(
    settings,
    `[databases]
* = host=${socketDir} port=5432
[pgbouncer]
listen_port = 6432
unix_socket_dir = ${folder.path}
auth_type = trust
auth_file = ${users}
pool_mode = ${mode}
`,
  );
  // PgBouncer refuses to run as root, and only the user of PostgreSQL may use its socket.
  const { uid, gid } = statSync(socketDir);
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(folder.path, uid, gid);
  const child = spawn(pgbouncer ?? "", [settings], { stdio: "ignore", ...(isRoot ? { uid, gid } : {}) });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const until = performance.now() + READY_MS;
  while (!existsSync(join(folder.path, ".s.PGSQL.6432"))) {
    if (child.exitCode !== null || performance.now() > until) throw new Error("PgBouncer did not start");
    await wait(10);
  }
  return {
    socketDir: folder.path,
    port: 6432,
    urlOf: (database: string) => `postgres:///${database}?host=${encodeURIComponent(folder.path)}&port=6432&user=postgres`,
    stop: async () => {
      child.kill("SIGKILL");
      await ended;
      folder.remove();
    },
  };
}
