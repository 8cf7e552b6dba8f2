import fc from "fast-check";
import { expect, test } from "vitest";
import { closeDatabases, type Databases, openDatabases } from "../../src/app/databases.ts";
import { type Config, embeddedConnections, readConfig } from "../../src/app/settings/config.ts";
import { ConfigError } from "../../src/app/start-error.ts";
import type { Cells } from "../../src/database/driver/cells.ts";
import { runs } from "../support/runs.ts";

const nowhere = { kind: "socket", folder: "/nonexistent", user: "x", database: "x" } as const;
/** One each for the lock of the data folder and the migrations, two for psql, three that PostgreSQL reserves for superusers. */
const OTHERS = 7;

async function connectionsOf(config: Config): Promise<number> {
  const databases: Databases = openDatabases(config, { address: nowhere, role: "x" });
  const { single, admission, billing, monitor } = databases;
  const pools: Cells[] = [single, admission, billing, monitor];
  await closeDatabases(databases);
  return pools.reduce((sum, { connections }) => sum + connections, 0);
}

test("the embedded database allows all connections that the settings permit", async () => {
  const count = (max: number) => fc.integer({ min: 1, max });
  await fc.assert(
    fc.asyncProperty(count(4), count(200), count(64), count(64), async (workers, single, admission, billing) => {
      const config = readConfig({
        VX_WORKERS: `${workers}`,
        VX_DATABASE_CONNECTIONS: `${single}`,
        VX_ADMISSION_PIPELINES: `${admission}`,
        VX_BILLING_PIPELINES: `${billing}`,
      });
      const processes = workers === 1 ? 1 : workers + 1;
      const opened = processes * (await connectionsOf(config));
      expect(embeddedConnections(config)).toBeGreaterThanOrEqual(opened + OTHERS);
    }),
    { numRuns: runs(30) },
  );
});

test("settings that need more connections than the embedded database allows are rejected", () => {
  const env = { VX_WORKERS: "64", VX_BILLING_PIPELINES: "64", VX_ADMISSION_PIPELINES: "64" };
  expect(() => readConfig(env)).toThrow(ConfigError);
  expect(() => readConfig(env)).toThrow(/VX_BILLING_PIPELINES: need 9065 connections/);
  expect(readConfig({ ...env, DATABASE_URL: "postgres://h/d" }).workers).toBe(64);
});
