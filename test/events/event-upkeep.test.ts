import { expect, test } from "vitest";
import { EventUpkeep } from "../../src/events/store.ts";
import { useOwnStore } from "../support/store.ts";

const store = useOwnStore();

test("old events are deleted every second until none are left, and otherwise once in a minute", async () => {
  const { owner } = store;
  await owner`INSERT INTO vx.accounts (lane, id, name, plan, created_at) VALUES (1, 'acct_1', 'test', 'free', now())`;
  const addOld = (from: number, to: number) => owner`
    INSERT INTO vx.events (lane, account_id, seq, id, type, created_at, data)
    SELECT 1, 'acct_1', n, 'evt_' || n, 'key.created', now() - interval '40 days', '{}'
    FROM generate_series(${from}::integer, ${to}::integer) n`;
  const left = async () => (await owner`SELECT 1 FROM vx.events WHERE account_id = 'acct_1'`).length;
  await addOld(1, 25_000);
  const upkeep = new EventUpkeep(store.database.home, 30);
  const counts: number[] = [];
  for (let second = 0; second < 3; second++) {
    await upkeep.maintain();
    counts.push(await left());
  }
  expect(counts).toEqual([15_000, 5_000, 0]);
  await addOld(25_001, 25_010);
  for (let second = 3; second < 60; second++) await upkeep.maintain();
  expect(await left()).toBe(10);
  await upkeep.maintain();
  expect(await left()).toBe(0);
});
