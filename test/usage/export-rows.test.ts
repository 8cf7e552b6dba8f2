import { expect, test } from "vitest";
import { type Lane, laneOfId, withLane } from "../../src/domain/lane.ts";
import { registerPrices } from "../../src/prices/store.ts";
import { exportLanes, exportMovementsOfLane, exportUsageOfLane } from "../../src/usage/export-rows.ts";
import { TEST_CALLER } from "../support/action.ts";
import { modelOf } from "../support/samples.ts";
import { useOwnStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

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

test("the list prices of a sum are those of the highest tier that each of its calls has reached", async () => {
  const { owner, database } = store;
  const rates = { ...modelOf().prices, tiers: [{ ...modelOf().prices, input: 500n, aboveInputTokens: 100 }] };
  const [model] = await registerPrices(database, [{ ...modelOf(), id: "tiered", prices: rates }]);
  const id = withLane(typeIds.account(), 9 as Lane);
  await database.call("create_account", TEST_CALLER, 9, id, "test", "free");
  for (const tier of [0, 99, 100, 101])
    await owner`
      INSERT INTO vx.usage_quarters (lane, account_id, quarter, key_id, model, user_id, price_version, price_tier,
        requests, input, cached_input, cache_write, output, reasoning, images, image_tokens, cost_micros)
      VALUES (9, ${id}, 10, 'key_1', 'tiered', '', ${model?.priceVersion ?? 0}, ${tier}, 1, 2, 0, 0, 0, 0, 0, 0, 3)`;
  const shown: unknown[] = [];
  for await (const rows of exportUsageOfLane(database, 9, { accountId: id, from: 10, to: 12 }, 10))
    shown.push(...rows.map((row) => [row.price_tier, row.input_list_price]));
  const { input } = modelOf().prices;
  expect(shown).toEqual([
    [0, input],
    [99, input],
    [100, 500n],
    [101, 500n],
  ]);
});
