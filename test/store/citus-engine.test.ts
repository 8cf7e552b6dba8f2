import { describe, expect, test } from "vitest";
import { clusterProblem, functionsForCitus } from "../../src/store/schema/citus.ts";
import { migrate } from "../../src/store/schema/migrate.ts";
import { readFiles } from "../../src/store/schema/sql-files.ts";
import { createTestDatabase } from "../support/database.ts";

const PLAIN = readFiles(new URL("../../src/store/schema/functions/", import.meta.url));
const CLUSTER = { version: "13.2-1", coordinates: true, workers: 2 };

test("a cell on Citus is refused if the database does not have the extension", async () => {
  const database = await createTestDatabase();
  const migration = migrate({ kind: "url", url: database.url }, { engine: "citus" });
  await expect(migration).rejects.toThrow(
    "its database does not have the extension: run CREATE EXTENSION citus",
  );
  await database.drop();
});

describe("a cluster can have a cell", () => {
  test.each([
    ["with a coordinator and two workers", {}, undefined],
    ["but not if its Citus is too old", { version: "12.1-1" }, "Citus 13 or newer is needed, this is 12.1-1"],
    [
      "but not at a worker",
      { coordinates: false },
      "is a worker of its Citus cluster; use the URL of the coordinator",
    ],
    ["but not without workers", { workers: 0 }, "has no worker: run citus_add_node"],
  ])("%s", (_what, change, problem) => {
    const found = clusterProblem({ ...CLUSTER, ...change });
    if (problem === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(problem);
  });
});

test("on Citus, every function that checks or locks the owner of a lane first takes the lock of the placement", () => {
  const checking = functionsForCitus(PLAIN).filter(
    ({ name, sql }) =>
      !["admit", "raise_lane_moved"].includes(name) &&
      /raise_lane_moved\(\)|is_owned[^;]*FOR UPDATE/.test(sql),
  );
  const withoutLock = checking.filter(({ sql }) => !/^BEGIN\n {2}PERFORM lock_placement\(\);$/m.test(sql));
  expect(withoutLock.map(({ name }) => name)).toEqual([]);
  expect(checking.map(({ name }) => name).sort()).toEqual(["bill", "lock_account", "require_lane", "sweep"]);
});

test("on Citus, admission takes the lock of the placement before it reads keys", () => {
  const admit = functionsForCitus(PLAIN).find(({ name }) => name === "admit")?.sql ?? "";
  const [first] = admit.slice(admit.indexOf("\nBEGIN\n")).match(/\b(SELECT|INSERT|UPDATE \w+ SET)\b.*/) ?? [];
  expect(first).toBe("UPDATE lanes SET epoch = epoch WHERE NOT is_owned AND lane = ANY (v_lanes);");
});

test("the other functions have the text of plain PostgreSQL", () => {
  const texts = new Map(PLAIN.map(({ name, checksum }) => [name, checksum]));
  const own = functionsForCitus(PLAIN).filter(({ name, checksum }) => texts.get(name) !== checksum);
  expect(own.map(({ name }) => name).sort()).toEqual([
    "admit",
    "bill",
    "create_ledger_partitions",
    "lock_account",
    "lock_placement",
    "partitions_at_coordinator",
    "require_lane",
    "sweep",
  ]);
});
