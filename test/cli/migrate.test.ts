import { expect, onTestFinished, test } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { unusedPort } from "../support/unused-port.ts";
import { vx } from "./support.ts";

test("migrate lists what it applies to an empty database, and can be repeated", async () => {
  const database = await createTestDatabase({ template: "template0" });
  onTestFinished(() => database.drop());
  const env = { DATABASE_URL: database.url };
  const upToDate = { code: 0, stdout: "The schema of the database is up to date.\n", stderr: "" };

  const planned = await vx(["migrate", "--dry-run"], env);
  expect(planned).toMatchObject({ code: 0, stderr: "" });
  expect(planned.stdout).toMatch(/^would apply 0001_foundation\nwould apply \d+ functions\n$/);
  expect((await vx(["migrate", "--status"], env)).stdout).toMatch(/^0001_foundation +pending$/m);
  expect(await database.owner`SELECT FROM pg_namespace WHERE nspname = 'vx'`).toEqual([]);

  expect(await vx(["migrate"], env)).toEqual({
    ...upToDate,
    stdout: planned.stdout.replaceAll("would apply", "applied") + upToDate.stdout,
  });
  expect(await vx(["migrate"], env)).toEqual(upToDate);
  expect(await vx(["migrate", "--dry-run"], env)).toEqual(upToDate);
  const status = (await vx(["migrate", "--status"], env)).stdout;
  expect(status).toMatch(/^MIGRATION +APPLIED\n0001_foundation +\d{4}-\d\d-\d\dT[\d:]+Z\n/);
  expect(status).toMatch(/\nfunctions +up to date\n$/);

  const json = async (...args: string[]) => JSON.parse((await vx(["migrate", ...args, "--json"], env)).stdout);
  expect(await json()).toEqual({ cell: "", tables: [], functions: 0, moves: [] });
  expect(await json("--status")).toEqual({
    cell: "",
    migrations: [{ name: "0001_foundation", applied_at: expect.stringMatching(/Z$/) }],
    pending_functions: 0,
  });

  await database.owner`UPDATE vx.functions SET checksum = '' WHERE name = 'bill'`;
  expect((await vx(["migrate", "--dry-run"], env)).stdout).toBe("would apply 1 function\n");
  expect(await json("--dry-run")).toMatchObject({ tables: [], functions: 1 });
  expect((await vx(["migrate", "--status"], env)).stdout).toMatch(/\nfunctions +1 pending\n$/);
  expect((await vx(["migrate"], env)).stdout).toBe(`applied 1 function\n${upToDate.stdout}`);
});

test("a login that may not read the migrations gets an error that says so", async () => {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const { folder, user, password } = database.address as { folder: string; user: string; password: string };
  const name = /postgres:\/\/\/(\w+)/.exec(database.url)?.[1];
  const url = `postgres:///${name}?host=${encodeURIComponent(folder)}&user=${user}&password=${password}`;
  expect(await vx(["migrate", "--status"], { DATABASE_URL: url })).toEqual({
    code: 1,
    stdout: "",
    stderr: expect.stringMatching(/^vx: this login may not read which migrations .* the owner/),
  });
});

test("an unreachable database is a one-line error without the password", async () => {
  const url = `postgres://owner:secret@127.0.0.1:${await unusedPort()}/vx`;
  const { code, stdout, stderr } = await vx(["migrate"], { DATABASE_URL: url });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^vx: the database cannot be reached.*\n$/);
  expect(stderr).not.toContain("secret");
});
