import { expect, test } from "vitest";
import { laneOfId, withLane } from "../../src/domain/lane.ts";
import { exportLanes, exportMovementsOfLane, exportUsageOfLane } from "../../src/store/export-usage.ts";
import { TEST_CALLER } from "../support/action.ts";
import { useOwnStore } from "../support/store.ts";

const store = useOwnStore();
const LANE = 7;
const IDS = Array.from({ length: 4 }, (_, i) => withLane(`acct_${String(i).padStart(24, "0")}00`, LANE));

test("pieces of any size contain each sum and each movement of the range once, in order", async () => {
  const { owner, database } = store;
  const accountIds = [...IDS, withLane("acct_zzzzzzzzzzzzzzzzzzzzzzzzzz", 8)];
  for (const id of accountIds) await database.call("create_account", TEST_CALLER, laneOfId(id), id, "test", "free");
  for (const id of [IDS[0], IDS[2], IDS[3], accountIds[4]] as string[]) {
    await owner`
      INSERT INTO vx.usage_quarters
      SELECT ${laneOfId(id)}::smallint, ${id}, 10 + i / 4, 'key_' || i % 2, 'm' || i / 2 % 2, '', 1, 1, 2, 0, 0, 0, 0, 0, 0, 3
      FROM generate_series(0, 11) i`;
    for (const n of [1, 2, 3]) {
      await database.call("move_balance", TEST_CALLER, laneOfId(id), id, `led_${id}_${n}`, 0, "credit", n, "x", `${n}`);
    }
    await owner`UPDATE vx.ledger SET created_at = to_timestamp((10 + seq) * 900 - 1) WHERE account_id = ${id}`;
  }
  const range = { accountId: "", from: 10, to: 12 };
  expect(await exportLanes(database, range)).toEqual([7, 8]);
  const inPieces = async (pieceRows: number, accountId: string) => {
    const own = { ...range, accountId };
    const sums: string[] = [];
    for await (const rows of exportUsageOfLane(database, LANE, own, pieceRows)) {
      sums.push(...rows.map((row) => `${IDS.indexOf(row.account_id)} ${row.quarter} ${row.key_id} ${row.model}`));
    }
    const movements: string[] = [];
    for await (const rows of exportMovementsOfLane(database, LANE, own, pieceRows)) {
      movements.push(...rows.map((row) => `${IDS.indexOf(row.account_id)} ${row.seq}`));
    }
    return { sums, movements };
  };
  const whole = await inPieces(1_000, "");
  expect(whole.sums).toHaveLength(3 * 8);
  expect(whole.sums).toEqual(whole.sums.toSorted());
  expect(whole.movements).toEqual(["0 1", "0 2", "2 1", "2 2", "3 1", "3 2"]);
  for (const pieceRows of [1, 2, 3, 7, 8, 9, 24]) expect(await inPieces(pieceRows, ""), `${pieceRows}`).toEqual(whole);
  const one = await inPieces(3, IDS[2] as string);
  expect(one.sums).toEqual(whole.sums.filter((text) => text.startsWith("2 ")));
  expect(one.movements).toEqual(["2 1", "2 2"]);
});
