import { join } from "node:path";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../../src/database/embedded/embedded-postgres.ts";
import { startTestApp, type TestApp } from "../support/app.ts";
import { createDataFolder } from "../support/data-folder.ts";
import { loginTo } from "../support/embedded.ts";
import { createTestKey, operatorOf, type TestKey } from "../support/fixtures.ts";
import { allowReplication, type Standby, startStandby } from "../support/standby.ts";
import { Line } from "../torture/line.ts";
import { generate } from "./server-process.ts";

const folder = createDataFolder("read-only");
let primary: EmbeddedPostgres;
let owner: postgres.Sql;
let standby: Standby;
/** Simulates a database proxy, or a DNS name that changes after a failover. */
let route: Line;
let app: TestApp;
let key: TestKey;
let charged = 0;

beforeAll(async () => {
  primary = await startEmbeddedPostgres({ dataDir: folder.path, print: () => undefined });
  owner = postgres({ ...loginTo(primary), max: 2 });
  await allowReplication(owner);
  await owner.end();
  await primary.restart();
  owner = postgres({ ...loginTo(primary), max: 2 });
  route = await Line.start(primaryPath());
  app = await startTestApp({ env: { DATABASE_URL: urlOf(route) } });
  key = await createTestKey(operatorOf(app));
  await operatorOf(app).creditAccount({
    accountId: key.accountId,
    amountMicros: 1_000_000n,
    reason: "test",
    idempotencyKey: "1",
  });
  standby = await startStandby(primary, owner);
});
afterAll(async () => {
  await app?.stop();
  await route?.stop();
  await standby?.stop();
  await owner?.end();
  await primary?.stop();
  folder.remove();
});

test("while the route leads to a hot standby, calls and /readyz return 503; both recover when it leads to the primary", async () => {
  expect(await call()).toBe(200);
  route.retarget({ path: standby.socketPath });
  route.cut();
  await expectUnavailable();
  // The connections to the standby stay open, as they do behind a proxy.
  route.retarget(primaryPath());
  await expectRecovery();
});

test("after default_transaction_read_only is turned off, every connection can write again", async () => {
  await expectRecovery();
  await owner`ALTER SYSTEM SET default_transaction_read_only = on`;
  await owner`SELECT pg_reload_conf()`;
  await expectUnavailable();
  await owner.unsafe("SET default_transaction_read_only = off");
  await owner`ALTER SYSTEM RESET default_transaction_read_only`;
  await owner`SELECT pg_reload_conf()`;
  await expectRecovery();
});

test("connections that were opened while the login was read-only are replaced", async () => {
  await owner`ALTER ROLE postgres SET default_transaction_read_only = on`;
  route.cut();
  await expectUnavailable();
  await owner`ALTER ROLE postgres RESET default_transaction_read_only`;
  await expectRecovery();
});

test("the writable one of several hosts is used, in any order", async () => {
  const toStandby = await Line.start({ path: standby.socketPath });
  const url = `postgres://postgres@127.0.0.1:${toStandby.port},127.0.0.1:${route.port}/postgres?target_session_attrs=read-write&password=${primary.passwordOf("postgres")}`;
  const other = await startTestApp({ env: { DATABASE_URL: url } });
  expect(await call(other)).toBe(200);
  await other.stop();
  await toStandby.stop();
});

test("a read-only database at start is a one-line error", async () => {
  const toStandby = await Line.start({ path: standby.socketPath });
  const env = { DATABASE_URL: urlOf(toStandby), VX_DATABASE_WAIT: "0" };
  await expect(startTestApp({ env })).rejects.toThrow(/127\.0\.0\.1:\d+ is read-only: it is a standby/);
  await toStandby.stop();
});

test("a promoted standby is used although the old primary still accepts writes, in any order and after a restart", async () => {
  const toStandby = await Line.start({ path: standby.socketPath });
  const [old, promoted] = [`127.0.0.1:${route.port}`, `127.0.0.1:${toStandby.port}`];
  const urlTo = (hosts: string) => `postgres://postgres@${hosts}/postgres?password=${primary.passwordOf("postgres")}`;
  const before = await startTestApp({ env: { DATABASE_URL: urlTo(`${old},${promoted}`) } });
  expect(await call(before)).toBe(200);
  const count = charged;
  expect(await countCharges(owner)).toBe(count);

  await standby.promote();
  const promotedOwner = postgres({ ...loginTo(standby), max: 1 });
  const [promotion] = await promotedOwner<{ at: Date }[]>`SELECT clock_timestamp() AS at`;
  // No error leads the server there, and its first heartbeat there shows that it moved.
  await vi.waitFor(async () =>
    expect(await promotedOwner`SELECT FROM vx.servers WHERE seen_at > ${promotion?.at as Date}`).toHaveLength(1),
  );
  expect(await call(before)).toBe(200);
  await before.stop();
  for (const hosts of [`${old},${promoted}`, `${promoted},${old}`]) {
    const after = await startTestApp({ env: { DATABASE_URL: urlTo(hosts) } });
    expect(await call(after)).toBe(200);
    await after.stop();
  }
  expect(await countCharges(promotedOwner)).toBe(charged);
  expect(await countCharges(owner)).toBe(count);
  await promotedOwner.end();
  await toStandby.stop();
});

async function countCharges(sql: postgres.Sql): Promise<number> {
  const [row] = await sql<{ count: number }[]>`
    SELECT count(*)::int FROM vx.ledger WHERE kind = 'generation'`;
  return row?.count ?? 0;
}

async function call({ url } = app): Promise<number> {
  const answer = await generate(url, key.secret);
  const body = (await answer.json()) as { error?: { code: string } };
  if (answer.status === 200) charged++;
  else expect(body.error?.code).toBe("unavailable");
  return answer.status;
}

/** No call gets another response in the meantime, and nothing is charged. */
async function expectUnavailable(): Promise<void> {
  await vi.waitFor(async () => expect(await call()).toBe(503));
  await vi.waitFor(async () => expect((await fetch(`${app.url}/readyz`)).status).toBe(503));
  for (let i = 0; i < 10; i++) expect(await call()).toBe(503);
}

async function expectRecovery(): Promise<void> {
  await vi.waitFor(async () => expect((await fetch(`${app.url}/readyz`)).status).toBe(200));
  // As many concurrent calls as connections, so that each connection is used.
  await vi.waitFor(async () => {
    const statuses = await Promise.all(Array.from({ length: 20 }, () => call()));
    expect(statuses).toEqual(statuses.map(() => 200));
  });
  expect(await countCharges(owner)).toBe(charged);
}

function primaryPath(): { path: string } {
  return { path: join(primary.socketDir, ".s.PGSQL.5432") };
}

function urlOf(line: Line): string {
  return `postgres://postgres:${primary.passwordOf("postgres")}@127.0.0.1:${line.port}/postgres`;
}
