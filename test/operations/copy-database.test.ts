import { randomBytes } from "node:crypto";
import { expect, inject, onTestFinished, test } from "vitest";
import { migrate } from "../../src/database/schema/migrate.ts";
import { vx } from "../cli/support.ts";
import { createTestDatabase } from "../support/database.ts";
import { bearer } from "../support/protocols.ts";
import { generate, getMe, inDataFolder, startHere, useDataFolder } from "./server-process.ts";

useDataFolder({ withDatabase: true });

/** A database and the URL of its owner, who is not a superuser, as in managed databases. */
async function createOwnDatabase() {
  const database = await createTestDatabase({ template: "template0" });
  const login = `owner_${randomBytes(4).toString("hex")}`;
  const name = /^postgres:\/\/\/(\w+)/.exec(database.url)?.[1] ?? "";
  const { owner } = database;
  await owner.unsafe(`CREATE ROLE ${login} LOGIN CREATEROLE PASSWORD 'secret'`);
  await owner.unsafe(`GRANT vx_app TO ${login} WITH ADMIN OPTION`);
  await owner.unsafe(`ALTER DATABASE ${name} OWNER TO ${login}`);
  // Other formats of values than those of the embedded database.
  await owner.unsafe(`ALTER DATABASE ${name} SET TimeZone = 'Asia/Kathmandu'`);
  await owner.unsafe(`ALTER DATABASE ${name} SET DateStyle = 'SQL, DMY'`);
  await owner.unsafe(`ALTER DATABASE ${name} SET bytea_output = 'escape'`);
  onTestFinished(async () => {
    await owner.unsafe(`REASSIGN OWNED BY ${login} TO CURRENT_USER; DROP OWNED BY ${login}; DROP ROLE ${login}`);
    await database.drop();
  });
  const host = encodeURIComponent(inject("socketDir"));
  return { owner, url: `postgres:///${name}?host=${host}&user=${login}&password=secret` };
}

test("the embedded database is copied to another PostgreSQL with the same money, keys and hashes", async () => {
  const server = startHere();
  const { url } = await server.started;
  const secret = server.demoKey();
  for (const max_tokens of [3, 5]) expect((await generate(url, secret, { max_tokens })).status).toBe(200);
  const ledgerAt = async (at: string) =>
    (await (await fetch(`${at}/v1/ledger`, { headers: bearer(secret) })).json()) as Promise<{
      entries: unknown[];
    }>;
  const [me, ledger] = [await getMe(url, secret), await ledgerAt(url)];
  expect(ledger.entries).toHaveLength(3);

  const target = await createOwnDatabase();
  const env = { VX_DATA_DIR: inDataFolder() };
  const copy = ["copy-database", "--to", target.url, "--json"];
  expect(await vx(copy, env)).toMatchObject({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^vx: a server uses the embedded database; stop it first\n$/),
  });
  await server.end();
  // Also without accounts, the target may have been in use.
  await migrate({ kind: "url", url: target.url });
  await target.owner`INSERT INTO vx.write_probes VALUES (clock_timestamp(), '')`;
  expect(await vx(copy, env)).toMatchObject({
    code: 1,
    stderr: "vx: the target has rows in vx.write_probes; use an empty database\n",
  });
  await target.owner`TRUNCATE vx.write_probes`;
  const { code, stdout, stderr } = await vx(copy, env);
  expect(stderr).toMatch(/^the database is copied; start the servers with DATABASE_URL/);
  expect(code).toBe(0);
  const { audit } = JSON.parse(stdout);
  expect(audit).toMatchObject({ consistent: true, accounts: 1, keys: 1, entries: 3, findings: [] });
  expect(await vx(copy, env)).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^vx: the target has rows in vx\.\w+; use an empty database\n$/),
  });

  const moved = startHere({ VX_DATA_DIR: inDataFolder("other"), DATABASE_URL: target.url });
  const { url: movedUrl, adminUrl } = await moved.started;
  expect(await getMe(movedUrl, secret)).toEqual(me);
  expect(await ledgerAt(movedUrl)).toEqual(ledger);
  const again = await vx(["audit", "--json"], { VX_DATA_DIR: inDataFolder("other"), VX_ADMIN_URL: adminUrl });
  expect(again.code).toBe(0);
  expect(JSON.parse(again.stdout)).toEqual(audit);
});
