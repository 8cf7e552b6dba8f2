import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, beforeEach, expect, inject, test, vi } from "vitest";
import { Connection } from "../../src/database/driver/connection.ts";
import { Hosts } from "../../src/database/driver/hosts.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { TEST_CALLER } from "../support/action.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { started } from "../support/started.ts";
import { Line } from "../torture/line.ts";

const OPTIONS = { statementTimeoutMs: 300, name: "connection under test", role: "vx_app" };

let connection: Connection;

const shared = started(() => createTestDatabase());
beforeEach(() => {
  connection = new Connection(new Hosts(shared.address), OPTIONS);
});
afterEach(() => connection.close());

async function backend(): Promise<Record<string, unknown>> {
  const rows = await connection.query(
    `SELECT pg_backend_pid() AS pid, current_user AS role, current_setting('statement_timeout') AS timeout,
       current_setting('TimeZone') AS zone, current_setting('jit') AS jit, $1::int AS number`,
    [1],
  );
  return (rows as Record<string, unknown>[])[0] ?? {};
}

test("a connection and its replacement have the configured role and settings", async () => {
  const expected = { role: "vx_app", timeout: "300ms", zone: "UTC", jit: "off", number: 1 };
  const first = await backend();
  expect(first).toMatchObject(expected);
  await shared.owner`SELECT pg_terminate_backend(${first.pid as number})`;
  // A statement that is sent before the client detects the closed connection fails.
  const second = await vi.waitFor(backend);
  expect(second).toMatchObject(expected);
  expect(second.pid).not.toBe(first.pid);
});

test.each([
  ["22012", "a division by zero", "SELECT 1 / $1::int"],
  [
    "VX000",
    "a refusal",
    `SELECT vx.create_account('${TEST_CALLER}', 1::smallint, 'acct_x', 'test', 'no such plan') FROM generate_series(0, $1::int)`,
  ],
  ["57014", "a statement timeout", "SELECT pg_sleep(60 + $1::int)"],
])("error %s keeps the connection: %s", async (code, _, text) => {
  const before = await backend();
  await expect(connection.query(text, [0])).rejects.toMatchObject({ code });
  expect(await backend()).toEqual(before);
});

test.each([
  ["25006", "the session is read-only", "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", writing()],
  ["42501", "the session lost its role", "SET ROLE pg_monitor", writing()],
  ["26000", "a prepared statement is gone", "SELECT 1", "EXECUTE nothing"],
])("error %s replaces the connection: %s", async (code, _, spoil, text) => {
  if (code === "42501") await shared.owner`GRANT pg_monitor TO vx_app`;
  const before = await backend();
  await connection.query(spoil, []);
  await expect(connection.query(text, [])).rejects.toMatchObject({ code });
  const after = await backend();
  expect(after.pid).not.toBe(before.pid);
  expect(after.role).toBe("vx_app");
  if (code !== "26000") await connection.query(text, []);
  if (code === "42501") await shared.owner`REVOKE pg_monitor FROM vx_app`;
});

function writing(id = `acct_${Math.random()}`): string {
  return `SELECT vx.create_account('${TEST_CALLER}', ${laneOfId(id)}::smallint, '${id}', 'test', 'free')`;
}

test("a statement whose connection takes too long to open is not executed later", async () => {
  const { folder } = shared.address as { folder: string };
  const password = inject("passwords").owner;
  const route = await Line.start({ path: `${folder}/.s.PGSQL.5432` });
  const url = `postgres://postgres:${password}@127.0.0.1:${route.port}/${nameOf(shared)}`;
  const slow = new Connection(new Hosts({ kind: "url", url }), OPTIONS);
  route.set({ holdsBack: true });
  await expect(slow.query(writing("acct_late"), [])).rejects.toMatchObject({ reason: "unavailable" });
  route.set({});
  // The connection opens now and executes the next statement.
  await slow.query("SELECT $1::int", [1]);
  expect(await shared.owner`SELECT FROM vx.accounts WHERE id = 'acct_late'`).toHaveLength(0);
  await slow.close();
  await route.stop();
});

test("a server that closes every connection at once is tried once per statement", async () => {
  let connections = 0;
  const server = createServer((socket: Socket) => {
    connections++;
    socket.on("error", () => undefined).once("data", () => socket.end());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const url = `postgres://x@127.0.0.1:${port}/x`;
  const lost = new Connection(new Hosts({ kind: "url", url }), OPTIONS);
  for (let i = 0; i < 2; i++) {
    await expect(lost.query("SELECT 1", [])).rejects.toMatchObject({
      reason: "unavailable",
      cause: { message: expect.stringContaining("closed the connection") },
    });
  }
  expect(connections).toBe(2);
  await lost.close();
  await new Promise((resolve) => server.close(resolve));
});

function nameOf({ address }: TestDatabase): string {
  return address.kind === "socket" ? address.database : "";
}
