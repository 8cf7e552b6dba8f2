import postgres from "postgres";
import type { TestProject } from "vitest/node";
import { prepareBinaries } from "../../src/database/embedded/binaries.ts";
import { ensureCluster } from "../../src/database/embedded/cluster.ts";
import { startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres.ts";
import { choosePlacement } from "../../src/database/embedded/placement.ts";
import { migrate } from "../../src/database/schema/migrate.ts";
import { readFunctions } from "../../src/database/schema/sql-files.ts";
import { readCatalogue, type SqlFunction } from "../../tools/sql/catalogue.ts";
import { copyDataFolder } from "./data-folder.ts";
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
    /** Removed after the last test: for files of servers that nothing stops before. */
    runFolder: string;
    /** What the SQL says of the functions that a server calls. */
    sqlFunctions: readonly SqlFunction[];
    /** A data folder with a new database, which tests copy. */
    dataTemplate: string;
  }
}

/** Each worker has servers that its files share, besides those of a file. */
const MAX_CONNECTIONS = 400;

/** Starts one PostgreSQL for all tests, with a migrated database that each test file clones. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const cluster = createTemporaryFolder("template");
  await createCluster(cluster.path);
  const folder = createTemporaryFolder("test");
  copyDataFolder(cluster.path, folder.path);
  const embedded = await startEmbeddedPostgres({ dataDir: folder.path, maxConnections: MAX_CONNECTIONS, print });
  const sql = postgres({ ...loginTo(embedded), max: 1 });
  // Nothing has to survive a power failure. Each new and each dropped database causes a checkpoint, after which whole pages are logged.
  await sql`ALTER SYSTEM SET fsync = off`;
  await sql`ALTER SYSTEM SET full_page_writes = off`;
  await sql`SELECT pg_reload_conf()`;
  await sql`CREATE DATABASE vx_template`;
  await migrate({ kind: "url", url: urlTo(embedded, "vx_template") });
  const template = postgres({ ...loginTo(embedded), database: "vx_template", max: 1 });
  await template`SET search_path = vx`;
  const functions = readFunctions();
  project.provide("sqlFunctions", (await readCatalogue(template, functions)).functions);
  await template.end();
  await sql.unsafe(`ALTER ROLE vx_app PASSWORD '${embedded.verifierOf("vx_app")}'`);
  await sql.end();
  project.provide("socketDir", embedded.socketDir);
  project.provide("passwords", { owner: embedded.passwordOf("postgres"), app: embedded.passwordOf("vx_app") });
  project.provide("runFolder", folder.path);
  project.provide("logDir", embedded.logDir);
  project.provide("dataTemplate", cluster.path);
  return async () => {
    await embedded.stop();
    folder.remove();
    cluster.remove();
  };
}

async function createCluster(dataDir: string): Promise<void> {
  const place = await choosePlacement(dataDir, print);
  await ensureCluster(place, await prepareBinaries(place, print), print);
}

function print(): void {}
