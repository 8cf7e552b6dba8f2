import { describe, expect, test } from "vitest";
import { clusterProblem, distributionOf, functionsForCitus, withShards } from "../../src/database/cells/citus/distribution.ts";
import { migrate } from "../../src/database/schema/migrate.ts";
import { readFiles, readFunctions } from "../../src/database/schema/sql-files.ts";
import { createTestDatabase } from "../support/database.ts";
import { words } from "../support/words.ts";

const PLAIN = readFunctions();
const CLUSTER = { version: "13.2-1", coordinates: true, workers: 2 };

test("a cell on Citus is refused if the database does not have the extension", async () => {
  const database = await createTestDatabase();
  const migration = migrate({ kind: "url", url: database.url }, { distribution: distributionOf("citus") });
  await expect(migration).rejects.toThrow("its database does not have the extension: run CREATE EXTENSION citus");
  await database.drop();
});

describe("a cluster can have a cell", () => {
  test.each([
    ["with a coordinator and two workers", {}, undefined],
    ["but not if its Citus is too old", { version: "12.1-1" }, "Citus 13 or newer is needed, this is 12.1-1"],
    ["but not at a worker", { coordinates: false }, "is a worker of its Citus cluster; use the URL of the coordinator"],
    ["but not without workers", { workers: 0 }, "has no worker: run citus_add_node"],
  ])("%s", (_what, change, problem) => {
    const found = clusterProblem({ ...CLUSTER, ...change });
    if (problem === undefined) expect(found).toBeUndefined();
    else expect(found).toContain(problem);
  });
});

const ON_CITUS = functionsForCitus(PLAIN);
const AT_SHARDS = ON_CITUS.filter(({ name }) => name.endsWith("_at_shards"));
/** With the name of a table. */
const USE = /\b(?:FROM|JOIN|INTO|UPDATE|USING|LOCK TABLE)\s+(\w+)\b(?!\()/g;
const TABLES = readFiles(new URL("../../src/database/schema/tables/", import.meta.url)).flatMap(({ sql }) =>
  [...sql.matchAll(/CREATE TABLE (\w+)/g)].map(([, table]) => table as string),
);

test("on Citus, every function that checks or locks the owner of a lane first keeps the schema on its worker", () => {
  const checking = ON_CITUS.filter(
    ({ name, sql }) =>
      name !== "raise_lane_moved" &&
      !name.endsWith("_at_shards") &&
      /raise_lane_moved\(\)|is_owned[^;]*FOR UPDATE(?! OF)/.test(sql),
  );
  const others = checking.filter(({ sql }) => !/^BEGIN\n {2}(PERFORM pin_schema\(\);|IF pin_schema\(\) THEN)$/m.test(sql));
  expect(others.map(({ name }) => name)).toEqual([]);
  expect(checking.map(({ name }) => name).sort()).toEqual(
    words(`
    admit bill lock_lane record_failures require_lane store_attempts sweep
  `),
  );
});

test("an audit reads only at the worker, in one snapshot that is taken after the schema is kept there", () => {
  const refusing = ON_CITUS.filter(({ sql }) => sql.includes("PERFORM require_schema();"));
  expect(refusing.map(({ name }) => name).sort()).toEqual(
    words(`
    audit audit_archived_usage audit_grants audit_limits audit_operator_events audit_prices audit_usage
    stored_usage
  `),
  );
  for (const { sql } of refusing) {
    expect(sql).not.toMatch(/\bSTABLE\b|^DECLARE$/m);
    expect(sql.match(/^BEGIN\n {2}PERFORM require_schema\(\);\n {2}RETURN QUERY [^;]*_at_shards\([^;]*;\nEND$/m)).not.toBeNull();
  }
});

test("the other functions have the text of plain PostgreSQL", () => {
  const texts = new Map(PLAIN.map(({ name, checksum }) => [name, checksum]));
  const own = ON_CITUS.filter(({ name, checksum }) => !name.endsWith("_at_shards") && texts.get(name) !== checksum);
  expect(own.map(({ name }) => name).sort()).toEqual(
    words(`
    admit audit audit_archived_usage audit_grants audit_limits audit_operator_events audit_prices audit_usage
    bill create_ledger_partitions keep_counts lanes_in_use lock_lane move_other_month
    partitions_at_coordinator pin_schema prove record_failures require_lane require_schema store_attempts
    stored_usage sweep
  `),
  );
});

describe("functions that work on the shards", () => {
  const named = withShards(AT_SHARDS, new Map(TABLES.map((table) => [table, "7"])));
  const usedBy = (sql: string) => [...sql.matchAll(USE)].map(([, table]) => table as string);

  test("name no table", () => {
    expect(AT_SHARDS.flatMap(({ sql }) => usedBy(sql)).filter((name) => TABLES.includes(name)).length).toBeGreaterThan(20);
    expect(named.flatMap(({ sql }) => usedBy(sql)).filter((name) => TABLES.includes(name))).toEqual([]);
    expect(named.flatMap(({ sql }) => sql.match(/ON CONSTRAINT \w+/g) ?? [])).toContain("ON CONSTRAINT key_minutes_pkey_7");
    expect(named.filter(({ sql }) => /_pkey\b/.test(sql))).toEqual([]);
  });

  // With their forced plans, Citus would crash.
  test("call no function that uses tables", () => {
    const using = PLAIN.filter(({ sql }) => usedBy(sql).some((name) => TABLES.includes(name)));
    const called = using.filter(({ name }) => named.some(({ sql }) => new RegExp(`\\b${name}\\(`).test(sql)));
    expect(called.map(({ name }) => name)).toEqual([]);
  });

  test("are not for servers", () => {
    expect(named.filter(({ sql }) => sql.includes("SECURITY DEFINER"))).toEqual([]);
  });
});
