import { rmSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { audit } from "../../src/audit/store.ts";
import { Database } from "../../src/database/driver/database.ts";
import { launchTestApp, startTestApp, useOwnApp } from "../support/app.ts";
import { putDatabase } from "../support/data-folder.ts";
import { createTestDatabase } from "../support/database.ts";
import { loginIn } from "../support/embedded.ts";
import { usePaidKey } from "../support/openai.ts";
import { fill, mountSmallDisk } from "../torture/faults/full-disk.ts";
import { generate } from "./server-process.ts";

let pool: Database;

const app = useOwnApp();
const key = usePaidKey(app);
beforeAll(async () => {
  const session = { connections: 2, statementTimeoutMs: 5_000, name: "test" };
  pool = new Database(app.database.address, { ...session, maxStatements: 100, maxWaitMs: 5_000 });
  await app.database.owner.unsafe(`CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$`);
});
afterAll(async () => {
  await pool.close();
});

/** Writes to the table fail as on a full disk until the returned function is called. */
async function refuseWrites(table: string): Promise<() => Promise<unknown>> {
  const { owner } = app.database;
  await owner.unsafe(`CREATE TRIGGER refuse BEFORE INSERT ON ${table} FOR EACH ROW EXECUTE FUNCTION public.refuse()`);
  return () => owner.unsafe(`DROP TRIGGER refuse ON ${table}`);
}

async function statusOf(path: string, url = app.url): Promise<number> {
  return (await fetch(url + path)).status;
}

test("/readyz is 503 while the database refuses writes", async () => {
  const accept = await refuseWrites("vx.write_probes");
  await vi.waitFor(async () => expect(await statusOf("/readyz")).toBe(503));
  expect(await statusOf("/livez")).toBe(200);
  await accept();
  await vi.waitFor(async () => expect(await statusOf("/readyz")).toBe(200));
});

test("a server that starts while the database refuses writes ends with the reason after its wait", async () => {
  const accept = await refuseWrites("vx.write_probes");
  await app.database.owner`TRUNCATE vx.write_probes`;
  await expect(startTestApp({ database: app.database, env: { VX_DATABASE_WAIT: "0" } })).rejects.toThrow(
    "the database cannot be used: could not extend file: No space left on device",
  );
  await accept();
  await vi.waitFor(async () => expect(await statusOf("/readyz")).toBe(200));
});

test("all processes together write one probe a second, in little space, and do not wait for a dump", async () => {
  const database = await createTestDatabase();
  const { owner } = database;
  const session = { connections: 1, statementTimeoutMs: 5_000, name: "probes" };
  const pool = new Database(database.address, { ...session, maxStatements: 10, maxWaitMs: 5_000 });
  const count = async () => (await owner`SELECT FROM vx.write_probes`).length;
  await pool.call("probe_writes");
  // A probe in the future is of a server whose database had another clock.
  for (const [age, after] of [
    ["-1 second", 2],
    ["1 second", 3],
    ["1 millisecond", 3],
  ] as const) {
    await owner.begin((sql) => [
      sql`UPDATE vx.write_probes SET at = clock_timestamp() - ${age}::interval`,
      sql`SELECT vx.probe_writes()`,
    ]);
    expect(await count()).toBe(after);
  }
  const fill = (rows: number) => owner`
    INSERT INTO vx.write_probes
    SELECT timestamptz '2000-01-01' + n * interval '1 second', repeat('x', 450) FROM generate_series(0, ${rows}::integer - 1) n`;
  await owner`TRUNCATE vx.write_probes`;
  await owner.begin(async (dump) => {
    await dump`LOCK TABLE vx.write_probes IN ACCESS SHARE MODE`;
    await fill(100);
    await pool.call("probe_writes");
    expect(await count()).toBeGreaterThan(100);
    // After an hour, the probes replace the oldest.
    await owner`DELETE FROM vx.write_probes`;
    await fill(3_600);
    const full = await count();
    await vi.waitFor(async () => {
      await pool.call("probe_writes");
      expect(await owner`SELECT FROM vx.write_probes WHERE at = '2000-01-01'`).toHaveLength(0);
    });
    expect(await count()).toBe(full);
  });
  await owner`TRUNCATE vx.write_probes`;
  await fill(100);
  await vi.waitFor(async () => {
    await pool.call("probe_writes");
    expect(await count()).toBeLessThan(10);
  });
  await pool.close();
  await database.drop();
});

test("while the ledger refuses rows, a unary call fails without a charge, and a delivered stream waits and is charged", async () => {
  const entries = async () =>
    (await app.database.owner`SELECT replace(id, 'led_', 'gen_') AS id FROM vx.ledger WHERE kind = 'generation'`).map(
      ({ id }) => id as string,
    );
  const before = await entries();
  const accept = await refuseWrites("vx.ledger");
  const streamed = generate(app.url, key.secret, { stream: true });
  const unary = await generate(app.url, key.secret);
  expect(unary.status).toBe(503);
  expect(await unary.json()).toMatchObject({
    error: { code: "unavailable", message: expect.stringContaining("Nothing was charged") },
  });
  // The hold of the unary call is released, although the ledger still refuses rows.
  await vi.waitFor(async () => expect(await app.database.owner`SELECT FROM vx.holds`).toHaveLength(1));
  await accept();
  const answer = await streamed;
  expect(answer.status).toBe(200);
  const [, id] = /"done":\{"id":"(gen_\w+)"/.exec(await answer.text()) ?? [];
  expect((await entries()).filter((entry) => !before.includes(entry))).toEqual([id]);
  expect((await audit(pool, new AbortController().signal)).findings).toEqual([]);
});

test("on a full disk every call ends, only answered calls are charged, and the server recovers", async (context) => {
  const disk = await mountSmallDisk();
  if (!disk) return context.skip("mounting a file system is not permitted");
  putDatabase(disk.path);
  const server = launchTestApp({ VX_DATA_DIR: disk.path });
  try {
    const { url } = await server.started;
    const secret = server.demoKey();
    let charged = 0;
    const call = async () => {
      const answer = await generate(url, secret);
      const { status } = answer;
      await answer.text();
      if (status === 200) charged++;
      return status;
    };
    expect(await call()).toBe(200);
    fill(join(disk.path, "ballast"));
    await vi.waitFor(async () => expect(await statusOf("/readyz", url)).toBe(503));
    const statuses = await Promise.all(Array.from({ length: 20 }, call));
    expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
    rmSync(join(disk.path, "ballast"));
    await vi.waitFor(async () => expect(await statusOf("/readyz", url)).toBe(200), { timeout: 30_000 });
    await vi.waitFor(async () => expect(await call()).toBe(200));
    const sql = postgres({ ...loginIn(disk.path), max: 1 });
    const [row] = await sql`SELECT count(*)::int AS entries FROM vx.ledger WHERE kind = 'generation'`;
    await sql.end();
    expect(row).toEqual({ entries: charged });
  } finally {
    await server.end();
    await disk.remove();
  }
});
