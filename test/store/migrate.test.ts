import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MeService } from "../../gen/vx/v1/me_pb.js";
import type { DatabaseAddress } from "../../src/store/connect.ts";
import { MigrationError, migrate } from "../../src/store/migrate.ts";
import { startTestApp } from "../support/app.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createTestKey, operatorOf } from "../support/fixtures.ts";
import { bearer, protocols } from "../support/protocols.ts";

const files = readdirSync(new URL("../../src/store/migrations/", import.meta.url));

async function withDatabase(
  template: string,
  run: (database: TestDatabase, as: (user: string) => DatabaseAddress) => Promise<void>,
): Promise<void> {
  const database = await createTestDatabase({ template });
  const as = (user: string): DatabaseAddress => {
    if (database.address.kind !== "socket") throw new Error("the tests use a socket");
    return { ...database.address, user };
  };
  try {
    await run(database, as);
  } finally {
    await database.drop();
  }
}

test("several servers that start at once on an empty database end with one schema", async () => {
  await withDatabase("template0", async ({ owner }, as) => {
    await Promise.all(Array.from({ length: 6 }, () => migrate(as("postgres"))));
    const applied = await owner`SELECT version, name FROM vx.migrations ORDER BY version`;
    expect([...applied]).toEqual(files.sort().map((name, i) => ({ version: i + 1, name })));
    expect(await owner`SELECT name FROM vx.plans ORDER BY name`).toHaveLength(3);
  });
});

test("migrations are numbered without gaps", () => {
  const numbers = files.sort().map((name) => Number(/^(\d{4})_[a-z_]+\.sql$/.exec(name)?.[1]));
  expect(numbers).toEqual(files.map((_, i) => i + 1));
});

test("migrating again changes nothing", async () => {
  await withDatabase("vx_template", async ({ owner }, as) => {
    const before = await owner`SELECT * FROM vx.migrations`;
    await migrate(as("postgres"));
    expect([...(await owner`SELECT * FROM vx.migrations`)]).toEqual([...before]);
  });
});

test("a database of a newer version is left alone", async () => {
  await withDatabase("vx_template", async ({ owner }, as) => {
    await owner`INSERT INTO vx.migrations VALUES (9999, '9999_future.sql', '', now())`;
    const failure = await failureOf(as("postgres"));
    expect(failure).toBeInstanceOf(MigrationError);
    expect(failure?.message).toMatch(/the database is newer than this code: .*9999/);
  });
});

test("a migration that fails leaves nothing of it behind", async () => {
  await withDatabase("template0", async ({ owner }, as) => {
    await owner`CREATE SCHEMA vx`;
    await owner`CREATE TABLE vx.ledger (in_the_way integer)`;
    expect(await failureOf(as("postgres"))).toBeInstanceOf(MigrationError);
    const tables = await owner`SELECT tablename FROM pg_tables WHERE schemaname = 'vx' ORDER BY tablename`;
    expect(tables.map(({ tablename }) => tablename)).toEqual(["ledger", "migrations"]);
    await owner`DROP TABLE vx.ledger`;
    await migrate(as("postgres"));
    expect(await owner`SELECT version FROM vx.migrations`).toHaveLength(files.length);
  });
});

test("a database that cannot be reached is one clear line", async () => {
  const nowhere: DatabaseAddress = { kind: "socket", folder: "/nonexistent", user: "x", database: "x" };
  const failure = await failureOf(nowhere);
  expect(failure).toBeInstanceOf(MigrationError);
  expect(failure?.message).toMatch(/^the database cannot be reached or prepared: .*ENOENT/);
});

describe("a login that does not own the database", () => {
  const login = `login_${randomBytes(6).toString("hex")}`;
  let admin: TestDatabase;
  beforeAll(async () => {
    admin = await createTestDatabase();
    await admin.owner.unsafe(`CREATE ROLE ${login} LOGIN`);
  });
  afterAll(async () => {
    await admin.owner.unsafe(`DROP ROLE ${login}`);
    await admin.drop();
  });

  test.each(["template0", "vx_template"])("is told what it lacks on a copy of %s", async (template) => {
    await withDatabase(template, async (_, as) => {
      const failure = await failureOf(as(login));
      expect(failure).toBeInstanceOf(MigrationError);
      expect(failure?.message).toMatch(/this login may not .*permission denied/);
    });
  });

  test("may start a server on an up-to-date schema once it is granted vx_app", async () => {
    await admin.owner.unsafe(`GRANT vx_app TO ${login}`);
    const url = admin.url.replace("user=postgres", `user=${login}`);
    const app = await startTestApp({ database: { ...admin, url } });
    const key = await createTestKey(operatorOf(app));
    const caller = protocols[0]?.open(app.url);
    const outcome = await caller?.call(MeService.method.getMe, {}, bearer(key.secret));
    caller?.close();
    await app.stop();
    expect(outcome).toMatchObject({ ok: true });
  });
});

async function failureOf(address: DatabaseAddress): Promise<Error | undefined> {
  return await migrate(address).then(
    () => undefined,
    (error: Error) => error,
  );
}
