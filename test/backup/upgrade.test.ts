import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { audit } from "../../src/audit/store.ts";
import { Database } from "../../src/database/driver/database.ts";
import { migrate } from "../../src/database/schema/migrate.ts";
import { spawnVx, vx } from "../cli/support.ts";
import { createTestDatabase, functionsOf, type TestDatabase } from "../support/database.ts";
import { createNextRelease, NEXT_MIGRATION } from "../support/next-release.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { unusedPort } from "../support/unused-port.ts";
import { startLoad } from "./load.ts";

const ready = /^vx ready on (\S+)$/m;
const TOKEN = "token-of-the-upgrade-test";

let database: TestDatabase;
let folder: ReturnType<typeof createTemporaryFolder>;
let servers: ServerProcess[];
let next: ReturnType<typeof createNextRelease>;

beforeAll(async () => {
  database = await createTestDatabase();
  next = createNextRelease();
  folder = createTemporaryFolder("upgrade");
  servers = [];
});

afterAll(async () => {
  for (const server of servers) await server.end("SIGTERM");
  await database.drop();
  folder.remove();
  next.remove();
});

async function auditNow() {
  const pool = new Database(database.address, {
    name: "audit",
    connections: 1,
    statementTimeoutMs: 30_000,
    maxStatements: 1,
    maxWaitMs: 30_000,
  });
  const report = await audit(pool, new AbortController().signal);
  await pool.close();
  return report;
}

/** A server whose login may only execute the functions, as docs/operations.md describes it. */
function serve(adminPort: number, program: string | undefined): ServerProcess {
  const host = encodeURIComponent(inject("socketDir"));
  const { database: name } = database.address as { database: string };
  const server = startServerProcess(
    {
      DATABASE_URL: `postgres:///${name}?host=${host}&user=vx_app&password=${inject("passwords").app}`,
      VX_DATA_DIR: folder.path,
      VX_ADMIN_TOKEN: TOKEN,
      VX_ADMIN_PORT: String(adminPort),
    },
    program === undefined ? {} : { command: [process.execPath, program, "serve"] },
  );
  servers.push(server);
  return server;
}

test("the next release migrates the schema under load, and its servers run beside those of this one", async () => {
  const adminPort = await unusedPort();
  const old = await serve(adminPort, undefined).line(ready);
  const env = { VX_ADMIN_TOKEN: TOKEN, VX_ADMIN_PORT: String(adminPort) };
  await vx(["accounts", "create", "--name", "load", "--external-id", "load", "--plan", "scale"], env);
  await vx(["accounts", "credit", "load", "100", "--reason", "test"], env);
  const created = await vx(["keys", "create", "load", "--name", "load", "--json"], env);
  const { secret } = JSON.parse(created.stdout) as { secret: string };

  const onOld = startLoad(old, secret);
  await onOld.reached(20);
  const migrated = await runNext(["migrate"]);
  expect(migrated).toMatchObject({ code: 0, stderr: "" });
  expect(migrated.stdout).toMatch(new RegExp(`^applied ${NEXT_MIGRATION}\napplied 3 functions\n`));
  const onNew = startLoad(await serve(await unusedPort(), next.program).line(ready), secret);
  await Promise.all([onNew.reached(40), onOld.reached(onOld.charged.length + 40)]);
  await Promise.all([onNew.stop(), onOld.stop()]);

  expect([...onOld.refused, ...onNew.refused]).toEqual([]);
  const charged = onOld.charged.length + onNew.charged.length;
  expect(await auditNow()).toMatchObject({ findings: [], accounts: 1n, entries: BigInt(1 + charged) });
}, 240_000);

test("this release does not change the schema of the next one", async () => {
  const before = await functionsOf(database.owner);
  await migrate({ kind: "url", url: database.url });
  expect(await functionsOf(database.owner)).toEqual(before);
  expect((await runNext(["migrate", "--dry-run"])).stdout).toBe("The schema of the database is up to date.\n");
});

function runNext(args: readonly string[]) {
  return spawnVx(args, { DATABASE_URL: database.url }, [], next.program);
}
