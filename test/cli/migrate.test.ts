import { expect, onTestFinished, test } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { freePort, spawnVx, vx } from "./support.ts";

test("migrate creates the schema in an empty database and can be repeated", async () => {
  const database = await createTestDatabase({ template: "template0" });
  onTestFinished(() => database.drop());
  for (const _ of ["empty", "up to date"]) {
    expect(await spawnVx(["migrate"], { DATABASE_URL: database.url })).toEqual({
      code: 0,
      stdout: "The schema of the database is up to date.\n",
      stderr: "",
    });
  }
  expect((await database.owner`SELECT version FROM vx.schema_version()`)[0]?.version).toBeGreaterThan(0);
});

test("an unreachable database is a one-line error without the password", async () => {
  const url = `postgres://owner:secret@127.0.0.1:${await freePort()}/vx`;
  const { code, stdout, stderr } = await vx(["migrate"], { DATABASE_URL: url });
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr).toMatch(/^vx: the database cannot be reached.*\n$/);
  expect(stderr).not.toContain("secret");
});
