import type postgres from "postgres";
import { afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Database } from "../../src/database/driver/database.ts";
import { DomainError } from "../../src/domain/errors.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { TEST_CALLER } from "../support/action.ts";
import { createTestDatabase } from "../support/database.ts";
import { started } from "../support/started.ts";

const STATEMENT_TIMEOUT_MS = 300;
const ACCOUNT = "acct_1";
const LANE = laneOfId(ACCOUNT);

let pool: Database;
let locked: Promise<unknown>;
let unlock: () => void;

const shared = started(() => createTestDatabase());
beforeAll(async () => {
  await shared.owner`SELECT vx.create_account(${TEST_CALLER}, ${LANE}::smallint, ${ACCOUNT}, 'test', 'free')`;
});

beforeEach(async () => {
  const { promise: held, resolve: isHeld } = Promise.withResolvers<void>();
  const { promise: release, resolve } = Promise.withResolvers<void>();
  unlock = resolve;
  locked = shared.owner.begin(async (transaction: postgres.TransactionSql) => {
    await transaction`SELECT FROM vx.lanes WHERE lane = ${LANE} FOR UPDATE`;
    isHeld();
    await release;
  });
  await held;
});
afterEach(async () => {
  unlock();
  await locked;
  await pool.close();
});

function open(options: Partial<ConstructorParameters<typeof Database>[1]> = {}): void {
  pool = new Database(shared.address, {
    connections: 2,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    maxStatements: 100,
    maxWaitMs: 30_000,
    name: "pool under test",
    ...options,
  });
}

/** A statement that waits for the locked lane. */
function blocked(): Promise<unknown> {
  return pool.call("move_balance", TEST_CALLER, LANE, ACCOUNT, `led_${Math.random()}`, 0, "credit", 1, "test", "1");
}

async function reasonOf(statement: Promise<unknown>): Promise<string> {
  try {
    await statement;
    return "ok";
  } catch (error) {
    const { reason, cause } = error as { reason: string; cause?: { code?: string; message: string } };
    return `${reason} ${cause?.code ?? cause?.message ?? ""}`.trim();
  }
}

test("time in the queue does not count towards the statement timeout", async () => {
  open();
  // Three rounds of two: the last statement waits twice as long as the statement timeout.
  const slow = Array.from({ length: 6 }, () => reasonOf(blocked()));
  const quick = reasonOf(pool.call("schema_version"));
  // 57014: PostgreSQL cancelled each of them.
  expect(await Promise.all(slow)).toEqual(slow.map(() => "unavailable 57014"));
  expect(await quick).toBe("ok");
});

test("only a connection that does not respond is closed", async () => {
  open();
  await pool.call("schema_version");
  const [pid = 0] = await pids();
  process.kill(pid, "SIGSTOP");
  // The connection that was used last is the next one.
  const dead = reasonOf(pool.call("schema_version"));
  try {
    let isOver = false;
    const ended = dead.finally(() => {
      isOver = true;
    });
    // The other connection is always busy.
    while (!isOver) expect(await reasonOf(pool.call("schema_version"))).toBe("ok");
    expect(await ended).toMatch(/^unavailable no response from the database/);
    expect(await reasonOf(pool.call("schema_version"))).toBe("ok");
  } finally {
    process.kill(pid, "SIGCONT");
  }
});

test("a statement that waits too long for a connection is rejected as overloaded", async () => {
  open({ maxWaitMs: 100 });
  const slow = [reasonOf(blocked()), reasonOf(blocked())];
  expect(await reasonOf(pool.call("schema_version"))).toBe("overloaded");
  expect(await Promise.all(slow)).toEqual(["unavailable 57014", "unavailable 57014"]);
  expect(await reasonOf(pool.call("schema_version"))).toBe("ok");
});

test("statements beyond the limit of waiting ones are rejected at once", async () => {
  open({ maxStatements: 4 });
  const slow = Array.from({ length: 4 }, () => reasonOf(blocked()));
  expect(pool.running).toBe(4);
  expect(await reasonOf(pool.call("schema_version"))).toBe("overloaded");
  await Promise.all(slow);
  expect(pool.running).toBe(0);
});

test("a pool opens connections when they are needed, up to its maximum", async () => {
  open({ connections: 3 });
  for (let i = 0; i < 5; i++) await pool.call("schema_version");
  expect(await connectionCount()).toBe(1);
  await Promise.all(Array.from({ length: 90 }, () => pool.call("schema_version")));
  expect(await connectionCount()).toBe(3);
});

test("waiting statements are rejected when the pool closes", async () => {
  open();
  const slow = [reasonOf(blocked()), reasonOf(blocked())];
  const waiting = reasonOf(pool.call("schema_version"));
  await pool.close();
  expect(await waiting).toBe("unavailable");
  await Promise.all(slow);
});

test("work under locks of this database fails without harm to its connections", async () => {
  open({ connections: 1 });
  await pool.call("schema_version");
  const before = await pids();
  const { promise: release, resolve: fail } = Promise.withResolvers<void>();
  const cause = Object.assign(new Error("another database does not listen"), { code: "ECONNREFUSED" });
  const work = pool.during("prove_person", TEST_CALLER, async () => {
    await release;
    throw new DomainError("unavailable", { cause });
  });
  const waiting = reasonOf(pool.call("schema_version"));
  fail();
  expect(await reasonOf(work)).toBe("unavailable ECONNREFUSED");
  expect(await waiting).toBe("ok");
  expect(await pids()).toEqual(before);
});

test("half of the connections keep locks for other work, and further work is rejected as overloaded", async () => {
  open({ connections: 2 });
  const { promise: release, resolve: end } = Promise.withResolvers<string>();
  const work = pool.during("prove_person", TEST_CALLER, () => release);
  expect(await reasonOf(pool.during("prove_person", TEST_CALLER, () => release))).toBe("overloaded");
  expect(await reasonOf(pool.call("schema_version"))).toBe("ok");
  end("done");
  expect(await work).toBe("done");
});

async function connectionCount(): Promise<number> {
  return (await pids()).length;
}

/** The server processes of the pool's connections. */
async function pids(): Promise<number[]> {
  const rows = await shared.owner<{ pid: number }[]>`SELECT pid FROM pg_stat_activity WHERE application_name = 'pool under test'`;
  return rows.map(({ pid }) => pid);
}
