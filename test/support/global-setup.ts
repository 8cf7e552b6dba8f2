import postgres from "postgres";
import type { TestProject } from "vitest/node";
import { startEmbeddedPostgres } from "../../src/embedded/embedded-postgres.ts";
import { migrate } from "../../src/store/migrate.ts";
import { createTemporaryFolder } from "./temporary-folder.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Folder of the unix socket of the PostgreSQL that all tests share. */
    socketDir: string;
    /** Where it writes its logs. */
    logDir: string;
  }
}

/** One real PostgreSQL for all tests, with a migrated database that each test file clones. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = createTemporaryFolder("test");
  const embedded = await startEmbeddedPostgres({ dataDir: folder.path, say: () => undefined });
  const sql = postgres({ host: embedded.socketDir, username: "postgres", database: "postgres", max: 1 });
  await sql`CREATE DATABASE vx_template`;
  await migrate({ kind: "socket", folder: embedded.socketDir, user: "postgres", database: "vx_template" });
  await sql.end();
  project.provide("socketDir", embedded.socketDir);
  project.provide("logDir", embedded.logDir);
  return async () => {
    await embedded.stop();
    folder.remove();
  };
}
