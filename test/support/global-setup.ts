import postgres from "postgres";
import type { TestProject } from "vitest/node";
import { startEmbeddedPostgres } from "../../src/embedded-postgres/embedded-postgres.ts";
import { migrate } from "../../src/store/schema/migrate.ts";
import { loginTo, urlTo } from "./embedded.ts";
import { createTemporaryFolder } from "./temporary-folder.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Folder of the unix socket of the PostgreSQL that all tests share. */
    socketDir: string;
    /** Passwords of the superuser and of the server's role. */
    passwords: { readonly owner: string; readonly app: string };
    /** The folder of its logs. */
    logDir: string;
  }
}

/** Starts one PostgreSQL for all tests, with a migrated database that each test file clones. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = createTemporaryFolder("test");
  const embedded = await startEmbeddedPostgres({ dataDir: folder.path, print: () => undefined });
  const sql = postgres({ ...loginTo(embedded), max: 1 });
  await sql`CREATE DATABASE vx_template`;
  await migrate({ kind: "url", url: urlTo(embedded, "vx_template") });
  await sql.unsafe(`ALTER ROLE vx_app PASSWORD '${embedded.verifierOf("vx_app")}'`);
  await sql.end();
  project.provide("socketDir", embedded.socketDir);
  project.provide("passwords", {
    owner: embedded.passwordOf("postgres"),
    app: embedded.passwordOf("vx_app"),
  });
  project.provide("logDir", embedded.logDir);
  return async () => {
    await embedded.stop();
    folder.remove();
  };
}
