import type postgres from "postgres";
import { afterEach, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { SplitSource } from "../../src/database/cells/split-source.ts";
import { withLane } from "../../src/domain/lane.ts";
import { TEST_CALLER } from "../support/action.ts";
import { createTestDatabase, untilWaiting } from "../support/database.ts";
import { started } from "../support/started.ts";

const store = started(() => createTestDatabase());

const LANES = [512, 513];
let splits = 0;

async function ownersOf(): Promise<string> {
  const rows = await store.owner<{ text: string }[]>`
    SELECT concat(lane, ' ', is_owned, ' ', epoch) AS text FROM vx.lanes WHERE lane IN (0, 512, 513) ORDER BY lane`;
  return rows.map(({ text }) => text).join(", ");
}

/** Records a split of a database that stands for its own copy too. */
async function begin(target = "b"): Promise<string> {
  const id = `split_${splits++}`;
  await store.owner`SELECT vx.begin_split(${id}, 'a', ${target}, ${LANES}::smallint[])`;
  return id;
}

const setState = (id: string, from: string, to: string) => store.owner`SELECT vx.set_split_state(${id}, ${from}, ${to})`;
const release = (id: string) => store.owner`SELECT vx.release_lanes(${id})`;
const takeBack = (id: string) => store.owner`SELECT vx.return_lanes(${id})`;
const claim = (id: string) => store.owner`SELECT vx.claim_lanes(${id})`;

/** A recorded split, which is forgotten after the test. */
async function createSplit(): Promise<string> {
  await store.owner`CREATE TABLE saved AS SELECT * FROM vx.lanes`;
  onTestFinished(async () => {
    await store.owner`UPDATE vx.lanes l SET is_owned = s.is_owned, epoch = s.epoch FROM saved s WHERE s.lane = l.lane`;
    await store.owner`DROP TABLE saved`;
    await store.owner`DELETE FROM vx.cell_splits`;
    await store.owner`DELETE FROM vx.cell_name`;
  });
  return await begin();
}

test("a confirmed split is claimed once, by the copy that replayed it, which becomes the only owner of the lanes", async () => {
  const id = await createSplit();
  await expect(claim(id)).rejects.toThrow("not in the state");
  await expect(takeBack(id)).rejects.toThrow("not in the state");
  await release(id);
  expect(await ownersOf()).toBe("0 t 1, 512 f 2, 513 f 2");
  await expect(claim(id)).rejects.toThrow("not in the state");
  await setState(id, "released", "confirmed");
  await expect(takeBack(id)).rejects.toThrow("not in the state");
  await claim(id);
  expect(await ownersOf()).toBe("0 f 1, 512 t 3, 513 t 3");
  expect(await store.owner`SELECT name FROM vx.cell_name`).toEqual([{ name: "b" }]);
  await expect(claim(id)).rejects.toThrow("not in the state");
});

test("lanes that were taken back cannot be claimed, and their epoch has increased", async () => {
  const id = await createSplit();
  await release(id);
  await takeBack(id);
  expect(await ownersOf()).toBe("0 t 1, 512 t 3, 513 t 3");
  await expect(setState(id, "released", "confirmed")).rejects.toThrow("not in the state");
  await expect(claim(id)).rejects.toThrow("not in the state");
});

test("a released split is aborted on the timeline of the release only", async () => {
  const id = await createSplit();
  const abort = () => store.owner`SELECT vx.abort_split(${id})`;
  await release(id);
  await store.owner`UPDATE vx.cell_splits SET timeline = '0000000A'`;
  await expect(abort()).rejects.toThrow("replaced in a failover");
  expect(await ownersOf()).toBe("0 t 1, 512 f 2, 513 f 2");
  await store.owner`UPDATE vx.cell_splits SET timeline = vx.current_timeline()`;
  await abort();
  expect(await ownersOf()).toBe("0 t 1, 512 t 3, 513 t 3");
  await expect(abort()).rejects.toThrow("not in the state");
});

test("a split begins only while no other is unfinished, with lanes of the cell, under its name", async () => {
  const id = await createSplit();
  await expect(begin()).rejects.toThrow("one_unfinished_split");
  await release(id);
  await expect(begin()).rejects.toThrow("does not own lane 512");
  await takeBack(id);
  const other = store.owner`SELECT vx.begin_split('other', 'c', 'b', ${LANES}::smallint[])`;
  await expect(other).rejects.toThrow('this database is the cell "a", not "c"');
});

test("a statement that checked the owner before the release is waited for, a later one is refused", async () => {
  const id = await createSplit();
  const source = await SplitSource.open({ kind: "url", url: store.url }, "vx");
  const reserved = await store.owner.reserve();
  try {
    await reserved`BEGIN`;
    await reserved`SELECT vx.find_member(512::smallint, 'acct_x', 'usr_x', '')`;
    await release(id);
    const [pid] = await reserved<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
    const [held] = await store.owner<{ id: string }[]>`
      SELECT virtualtransaction AS id FROM pg_locks WHERE pid = ${pid?.pid ?? 0} LIMIT 1`;
    expect([...(await source.transactions())]).toEqual([held?.id]);
    await expect(store.owner`SELECT vx.find_member(512::smallint, 'acct_x', 'usr_x', '')`).rejects.toThrow("lane_moved");
    await reserved`COMMIT`;
    expect([...(await source.transactions())]).toEqual([]);
  } finally {
    await reserved`ROLLBACK`;
    reserved.release();
    await source.close();
  }
});

test("accounts of lanes that another cell owns are not found by their name or external id", async () => {
  const account = (lane: number, n: number) => withLane(`acct_0000000000000000000000${n}000`, lane);
  const id = await createSplit();
  for (const [n, lane] of [512, 513, 0].entries()) {
    await store.owner`
      SELECT vx.create_account(${TEST_CALLER}, ${lane}::smallint, ${account(lane, n)}, 'twin', 'free', ${JSON.stringify({ external_id: `twin-${n}` })})`;
  }
  await release(id);
  expect(await store.owner`SELECT id FROM vx.find_accounts('twin', true)`).toEqual([{ id: account(0, 2) }]);
  expect(await store.owner`SELECT id FROM vx.find_accounts('twin-0', true)`).toEqual([]);
  expect(await store.owner`SELECT id FROM vx.find_accounts('twin-2', true)`).toEqual([{ id: account(0, 2) }]);
});

/** Claims deliveries as a server does, and returns their lanes. */
async function claimedLanes(sql: postgres.ISql = store.owner): Promise<number[]> {
  const rows = await sql<{ lane: number }[]>`SELECT lane FROM vx.claim_deliveries(9, 4, 9, '{}', 1023::smallint) ORDER BY lane`;
  return rows.map(({ lane }) => lane);
}

describe("deliveries of lanes that another cell owns", () => {
  beforeAll(async () => {
    await store.owner`
      INSERT INTO vx.webhooks (lane, id, account_id, url, description, types, state, enabled_at, secret, created_at)
      VALUES (1024, 'who_1', '', 'https://example.com', '', '{}', 'enabled', now(), 'whsec_', now())`;
  });

  afterEach(() => store.owner`TRUNCATE vx.deliveries, vx.webhook_queues, vx.woken_queues`);

  async function writeEvents(...lanes: number[]): Promise<void> {
    await store.owner.begin(async (transaction) => {
      await transaction`SET LOCAL search_path = vx`;
      for (const lane of lanes) await transaction`SELECT write_event(${lane}::smallint, 'acct_1', 'test', '{}')`;
    });
  }

  test("are claimed once the cell owns them again, and delay no others", async () => {
    const id = await createSplit();
    await release(id);
    await writeEvents(...LANES);
    expect(await claimedLanes()).toEqual([]);
    // Two queues of a webhook of operators are claimed at once, those that have waited longest.
    await store.owner`UPDATE vx.webhook_queues SET blocked_until = blocked_until - interval '2 minutes'`;
    await writeEvents(0);
    expect(await claimedLanes()).toEqual([0]);
    await takeBack(id);
    expect(await claimedLanes()).toEqual(LANES);
  });

  test("are claimed if a claim still finds that another cell owns them", async () => {
    const id = await createSplit();
    await release(id);
    await writeEvents(...LANES);
    let returned: Promise<unknown> | undefined;
    await store.owner.begin(async (transaction) => {
      expect(await claimedLanes(transaction)).toEqual([]);
      returned = takeBack(id).execute();
      await untilWaiting(store, 1, "return_lanes");
    });
    await returned;
    expect(await claimedLanes()).toEqual(LANES);
  });
});
