import { expect, test } from "vitest";
import { SplitSource } from "../../src/cells/split-source.ts";
import { withLane } from "../../src/domain/lane.ts";
import { TEST_ACTION_JSON } from "../support/action.ts";
import { createTestDatabase } from "../support/database.ts";
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

const setState = (id: string, from: string, to: string) =>
  store.owner`SELECT vx.set_split_state(${id}, ${from}, ${to})`;
const release = (id: string) => store.owner`SELECT vx.release_lanes(${id})`;
const takeBack = (id: string) => store.owner`SELECT vx.return_lanes(${id})`;
const claim = (id: string) => store.owner`SELECT vx.claim_lanes(${id})`;

async function withSplit(work: (split: string) => Promise<void>): Promise<void> {
  await store.owner`CREATE TABLE saved AS SELECT * FROM vx.lanes`;
  try {
    await work(await begin());
  } finally {
    await store.owner`UPDATE vx.lanes l SET is_owned = s.is_owned, epoch = s.epoch FROM saved s WHERE s.lane = l.lane`;
    await store.owner`DROP TABLE saved`;
    await store.owner`DELETE FROM vx.cell_splits`;
    await store.owner`DELETE FROM vx.cell_name`;
  }
}

test("a confirmed split is claimed once, by the copy that replayed it, which becomes the only owner of the lanes", async () => {
  await withSplit(async (id) => {
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
});

test("lanes that were taken back cannot be claimed, and their epoch has increased", async () => {
  await withSplit(async (id) => {
    await release(id);
    await takeBack(id);
    expect(await ownersOf()).toBe("0 t 1, 512 t 3, 513 t 3");
    await expect(setState(id, "released", "confirmed")).rejects.toThrow("not in the state");
    await expect(claim(id)).rejects.toThrow("not in the state");
  });
});

test("a released split is aborted on the timeline of the release only", async () => {
  await withSplit(async (id) => {
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
});

test("a split begins only while no other is unfinished, with lanes of the cell, under its name", async () => {
  await withSplit(async (id) => {
    await expect(begin()).rejects.toThrow("one_unfinished_split");
    await release(id);
    await expect(begin()).rejects.toThrow("does not own lane 512");
    await takeBack(id);
    const other = store.owner`SELECT vx.begin_split('other', 'c', 'b', ${LANES}::smallint[])`;
    await expect(other).rejects.toThrow('this database is the cell "a", not "c"');
  });
});

test("a statement that checked the owner before the release is waited for, a later one is refused", async () => {
  await withSplit(async (id) => {
    const source = await SplitSource.open({ kind: "url", url: store.url }, "vx");
    const reserved = await store.owner.reserve();
    try {
      await reserved`BEGIN`;
      await reserved`SELECT vx.revoke_key(512::smallint, 'acct_x', 'key_x')`;
      await release(id);
      const [pid] = await reserved<{ pid: number }[]>`SELECT pg_backend_pid() AS pid`;
      const [held] = await store.owner<{ id: string }[]>`
        SELECT virtualtransaction AS id FROM pg_locks WHERE pid = ${pid?.pid ?? 0} LIMIT 1`;
      expect([...(await source.transactions())]).toEqual([held?.id]);
      await expect(store.owner`SELECT vx.revoke_key(512::smallint, 'acct_x', 'key_x')`).rejects.toThrow(
        "lane_moved",
      );
      await reserved`COMMIT`;
      expect([...(await source.transactions())]).toEqual([]);
    } finally {
      await reserved`ROLLBACK`;
      reserved.release();
      await source.close();
    }
  });
});

test("accounts of lanes that another cell owns are not found by their name or external id", async () => {
  const account = (lane: number, n: number) => withLane(`acct_0000000000000000000000${n}000`, lane);
  await withSplit(async (id) => {
    for (const [n, lane] of [512, 513, 0].entries()) {
      await store.owner`
        SELECT vx.create_account(${TEST_ACTION_JSON}, ${lane}::smallint, ${account(lane, n)}, 'twin', 'free', ${`twin-${n}`})`;
    }
    await release(id);
    expect(await store.owner`SELECT id FROM vx.find_accounts('twin')`).toEqual([{ id: account(0, 2) }]);
    expect(await store.owner`SELECT id FROM vx.find_accounts('twin-0')`).toEqual([]);
    expect(await store.owner`SELECT id FROM vx.find_accounts('twin-2')`).toEqual([{ id: account(0, 2) }]);
  });
});
