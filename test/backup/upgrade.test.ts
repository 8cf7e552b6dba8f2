import { afterAll, beforeAll, expect, inject, test } from "vitest";
import { audit } from "../../src/store/audit.ts";
import { Database } from "../../src/store/driver/database.ts";
import { migrate } from "../../src/store/schema/migrate.ts";
import { freePort, vx } from "../cli/support.ts";
import { createTestDatabase, functionsOf, type TestDatabase } from "../support/database.ts";
import { type ServerProcess, startServerProcess } from "../support/process.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";
import { startLoad } from "./load.ts";
import { FIXTURE_ENTRIES, previousCode, previousData } from "./previous-release.ts";

const ready = /^vx ready on (\S+)$/m;
const TOKEN = "token-of-the-upgrade-test";

let database: TestDatabase;
let folder: ReturnType<typeof createTemporaryFolder>;
let servers: ServerProcess[];

beforeAll(async () => {
  database = await createTestDatabase({ template: "template0" });
  await database.owner.unsafe(previousData()).simple();
  folder = createTemporaryFolder("upgrade");
  servers = [];
});

afterAll(async () => {
  for (const server of servers) await server.end("SIGTERM");
  await database.drop();
  folder.remove();
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

test("the data of the previous release is migrated under load, with its servers beside those of this one", async (context) => {
  const previous = previousCode();
  if (previous === undefined) {
    console.warn(
      "SKIPPED: the previous release cannot be installed: its commit is not in this clone, or npm cannot reach a registry",
    );
    context.skip();
    return;
  }
  try {
    const adminPort = await freePort();
    const old = await serve(adminPort, previous.program).line(ready);
    const env = { VX_ADMIN_TOKEN: TOKEN, VX_ADMIN_PORT: String(adminPort) };
    const created = await vx(["keys", "create", "crm-17", "--name", "load", "--json"], env);
    const { secret } = JSON.parse(created.stdout) as { secret: string };

    const onOld = startLoad(old, secret);
    await onOld.reached(20);
    const { code } = await vx(["migrate"], { DATABASE_URL: database.url });
    expect(code).toBe(0);
    const onNew = startLoad(await serve(await freePort(), undefined).line(ready), secret);
    await Promise.all([onNew.reached(40), onOld.reached(onOld.charged.length + 40)]);
    await Promise.all([onNew.stop(), onOld.stop()]);

    expect([...onOld.refused, ...onNew.refused]).toEqual([]);
    const charged = onOld.charged.length + onNew.charged.length;
    expect(await auditNow()).toMatchObject({
      findings: [],
      accounts: 4n,
      entries: BigInt(FIXTURE_ENTRIES + charged),
    });
  } finally {
    for (const server of servers) await server.end("SIGTERM");
    servers = [];
    previous.remove();
  }
}, 240_000);

test("after the migration, each entry of the previous release has its hash, and each function is that of a new database", async () => {
  await migrate({ kind: "url", url: database.url });
  const [{ found } = { found: 0n }] = await database.owner<{ found: bigint }[]>`
    SELECT count(*) AS found FROM vx.ledger`;
  expect(Number(found)).toBeGreaterThanOrEqual(FIXTURE_ENTRIES);
  expect(await auditNow()).toMatchObject({ findings: [] });
  const fresh = await createTestDatabase();
  expect(await functionsOf(database.owner)).toEqual(await functionsOf(fresh.owner));
  await fresh.drop();
  await database.owner`UPDATE vx.ledger SET amount_micros = amount_micros - 1 WHERE kind = 'credit' AND seq = 1`;
  expect((await auditNow()).findings.map(({ rule }) => rule)).toContain("ledger_unchanged");
});
