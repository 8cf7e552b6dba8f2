import { randomBytes } from "node:crypto";
import postgres from "postgres";
import { describe, expect, inject, onTestFinished, test } from "vitest";
import { Connection } from "../../src/database/driver/connection.ts";
import { Hosts } from "../../src/database/driver/hosts.ts";
import { migrate } from "../../src/database/schema/migrate.ts";
import { startTestApp } from "../support/app.ts";
import { createTestDatabase } from "../support/database.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { pgbouncer, startPgBouncer } from "../support/pgbouncer.ts";
import { bearer } from "../support/protocols.ts";

const title = pgbouncer ? "behind PgBouncer" : "behind PgBouncer (SKIPPED: pgbouncer is not installed)";

describe.skipIf(!pgbouncer)(title, () => {
  const socketDir = inject("socketDir");
  const password = inject("passwords").owner;

  test("in session mode a server migrates, and every call has the settings of its session", async () => {
    const database = await createTestDatabase({ template: "template0" });
    const bouncer = await startPgBouncer({ mode: "session", socketDir, password });
    onTestFinished(bouncer.stop);
    const url = bouncer.urlOf(nameIn(database.url));
    const app = await startTestApp({ database: { ...database, url } });
    const key = await createTestKey(operatorOf(app));
    const credit = { reason: "test", idempotencyKey: randomBytes(8).toString("hex") };
    await operatorOf(app).creditAccount({ accountId: key.accountId, amountMicros: 1_000_000n, ...credit });
    const answers = await Promise.all(Array.from({ length: 20 }, () => generate(app.url, key.secret)));
    expect(answers).toEqual(answers.map(() => 200));

    // A second connection through the same pooler, after the first one has released its backend.
    for (let i = 0; i < 2; i++) {
      const options = { statementTimeoutMs: 300, name: "behind a pooler", role: "vx_app" };
      const connection = new Connection(new Hosts({ kind: "url", url }), options);
      const [row] = (await connection.query(
        `SELECT current_user AS role, current_setting('statement_timeout') AS timeout,
           current_setting('application_name') AS name, $1::int AS number`,
        [i],
      )) as unknown[];
      expect(row).toEqual({ role: "vx_app", timeout: "300ms", name: "behind a pooler", number: i });
      await connection.close();
    }
    await app.stop();
    await database.drop();
  });

  test.each(["transaction", "statement"] as const)("%s mode is rejected at startup", async (mode) => {
    const database = await createTestDatabase();
    const bouncer = await startPgBouncer({ mode, socketDir, password });
    onTestFinished(bouncer.stop);
    const url = bouncer.urlOf(nameIn(database.url));
    await expect(migrate({ kind: "url", url })).rejects.toThrow(/transaction or statement mode.*pool_mode/);

    // Also if other clients use the same backends at the same time.
    const { socketDir: host, port } = bouncer;
    const login = { host, port, username: "postgres", database: nameIn(database.url) };
    const others = postgres({ ...login, max: 3, prepare: false, fetch_types: false });
    let isOver = false;
    const load = Array.from({ length: 3 }, async () => {
      while (!isOver) await others.unsafe("SELECT 1");
    });
    await expect(migrate({ kind: "url", url })).rejects.toThrow(/transaction or statement mode.*pool_mode/);
    isOver = true;
    await Promise.all(load);
    await others.end();
    await database.drop();
  });
});

function nameIn(url: string): string {
  return /^postgres:\/\/\/(\w+)/.exec(url)?.[1] ?? "";
}

async function generate(url: string, secret: string): Promise<number> {
  const answer = await fetch(`${url}/v1/generate`, {
    method: "POST",
    headers: { "content-type": "application/json", ...bearer(secret) },
    body: JSON.stringify({ model: "vx-sandbox-small", messages: [{ role: "user", content: "hello" }] }),
  });
  await answer.arrayBuffer();
  return answer.status;
}
