import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import postgres from "postgres";
import { expect, inject, vi } from "vitest";
import type { DatabaseAddress } from "../../src/database/driver/connect.ts";

/** A separate database, cloned from the migrated template. */
export type TestDatabase = {
  /** Login with the server's role, which may only execute functions. */
  readonly address: DatabaseAddress;
  readonly url: string;
  /** Login as the owner, to read and change tables directly. */
  readonly owner: postgres.Sql;
  drop(): Promise<void>;
};

export async function createTestDatabase(options: { template?: string } = {}): Promise<TestDatabase> {
  const folder = inject("socketDir");
  const passwords = inject("passwords");
  const owned = { host: folder, username: "postgres", password: passwords.owner };
  const name = `t_${randomBytes(6).toString("hex")}`;
  const admin = postgres({ ...owned, database: "postgres", max: 1 });
  const template = options.template ?? "vx_template";
  // Copying the files takes a third of the CPU time of logging every page.
  await admin.unsafe(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`);
  const owner = postgres({ ...owned, database: name, max: 4, onnotice: () => undefined });
  return {
    address: { kind: "socket", folder, user: "vx_app", password: passwords.app, database: name },
    url: `postgres:///${name}?host=${encodeURIComponent(folder)}&user=postgres&password=${passwords.owner}`,
    owner,
    drop: async () => {
      await owner.end();
      await admin.unsafe(`DROP DATABASE ${name} WITH (FORCE)`);
      await admin.end();
    },
  };
}

/** Waits until so many sessions of the database, with such a statement, wait for a lock. */
export async function untilWaiting({ owner }: Pick<TestDatabase, "owner">, sessions = 1, statement = ""): Promise<void> {
  const check = async () => {
    const waiting = await owner`
      SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND query ~ ${statement}`;
    expect(waiting).toHaveLength(sessions);
  };
  await vi.waitFor(check, { interval: 5 });
}

/** Every function of the schema, with its text and who may execute it. */
export async function functionsOf(owner: postgres.Sql): Promise<string[]> {
  const rows = await owner<{ text: string }[]>`
    SELECT pg_get_functiondef(oid) || coalesce(proacl::text, '') AS text FROM pg_proc
    WHERE pronamespace = 'vx'::regnamespace ORDER BY oid::regprocedure::text`;
  return rows.map(({ text }) => text);
}

/** Every row of every table, as text. */
export async function dumpTables({ owner }: Pick<TestDatabase, "owner">): Promise<string> {
  const tables = await owner<{ name: string }[]>`
    SELECT format('vx.%I', tablename) AS name FROM pg_tables WHERE schemaname = 'vx'`;
  const rows = await Promise.all(
    tables.map(({ name }) => owner.unsafe<{ text: string }[]>(`SELECT t::text AS text FROM ${name} t`)),
  );
  return rows
    .flat()
    .map(({ text }) => text)
    .join("\n");
}

/** All that PostgreSQL has logged. */
export function postgresLog(): string {
  const folder = inject("logDir");
  return readdirSync(folder)
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("");
}
