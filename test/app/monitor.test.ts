import { expect, test } from "vitest";
import { closeAll } from "../../src/app/app.ts";
import { Database } from "../../src/database/driver/database.ts";
import { DatabaseClock } from "../../src/database/driver/database-clock.ts";
import { DatabaseMonitor } from "../../src/database/driver/monitor.ts";
import { laneOfId } from "../../src/domain/lane.ts";
import { TEST_CALLER } from "../support/action.ts";
import { createTestDatabase } from "../support/database.ts";
import { started } from "../support/started.ts";

type Wait = PromiseWithResolvers<void>;

const shared = started(() => createTestDatabase());

test("too many statements do not make the database unreachable", async () => {
  const lane = laneOfId("acct_1");
  await shared.owner`SELECT vx.create_account(${TEST_CALLER}, ${lane}::smallint, 'acct_1', 'test', 'free')`;
  const pool = new Database(shared.address, {
    connections: 1,
    statementTimeoutMs: 30_000,
    maxStatements: 10,
    maxWaitMs: 20,
    name: "monitor",
  });
  const changes: boolean[] = [];
  await shared.owner.begin(async (transaction) => {
    await transaction`SELECT FROM vx.lanes WHERE lane = ${lane} FOR UPDATE`;
    const blocked = pool.call("set_account_plan", TEST_CALLER, lane, "acct_1", "pro");
    const { promise: looked, resolve: look } = Promise.withResolvers<void>();
    const monitor = new DatabaseMonitor(pool, {
      clock: new DatabaseClock(() => performance.now()),
      prepare: async () => undefined,
      onChange: (reachable) => changes.push(reachable),
      revive: async () => look(),
      maintain: async () => look(),
      onFailure: () => undefined,
    });
    monitor.start();
    await looked;
    monitor.stop();
    expect(monitor.reachable).toBe(true);
    expect(changes).toEqual([]);
    blocked.catch(() => undefined);
  });
  await pool.close();
});

test.each(["check", "maintenance"])("a stop during a %s, which closes the pool, reports no failure", async (step) => {
  const options = { connections: 1, statementTimeoutMs: 30_000, maxStatements: 10, maxWaitMs: 20, name: "monitor" };
  const pool = new Database(shared.address, options);
  const [reached, closed, ended] = [0, 1, 2].map(() => Promise.withResolvers<void>()) as [Wait, Wait, Wait];
  const work = async (current: string) => {
    if (current !== step) return;
    reached.resolve();
    await closed.promise;
    await pool.requireWritable().finally(ended.resolve);
  };
  const reports: unknown[] = [];
  const monitor = new DatabaseMonitor(pool, {
    clock: new DatabaseClock(() => performance.now()),
    prepare: () => work("check"),
    onChange: (_, error) => reports.push(error),
    revive: async () => undefined,
    maintain: () => work("maintenance"),
    onFailure: (error) => reports.push(error),
  });
  monitor.start();
  await reached.promise;
  monitor.stop();
  await pool.close();
  closed.resolve();
  await expect(ended.promise.then(() => pool.requireWritable())).rejects.toMatchObject({ reason: "unavailable" });
  expect(reports).toEqual([]);
});

test("a component that fails to close does not prevent the others from closing", async () => {
  const closed: string[] = [];
  const closing = closeAll([
    async () => void closed.push("first"),
    async () => {
      throw new Error("second");
    },
    async () => void closed.push("third"),
  ]);
  await expect(closing).rejects.toMatchObject({ errors: [new Error("second")] });
  expect(closed).toEqual(["first", "third"]);
});
