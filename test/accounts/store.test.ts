import { expect, test } from "vitest";
import { LANE_COUNT, laneOfId } from "../../src/domain/lane.ts";
import { TEST_CALLER } from "../support/action.ts";
import { useStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

const database = useStore();

test("an account is created only in the lane of its id", async () => {
  const { owner } = database;
  const id = typeIds.account();
  const create = (lane: number) =>
    owner`SELECT id FROM vx.create_account(${TEST_CALLER}, ${lane}::smallint, ${id}, 'test', 'free')`;
  await expect(create((laneOfId(id) + 1) % LANE_COUNT)).rejects.toMatchObject({ code: "23514" });
  expect([...(await create(laneOfId(id)))]).toEqual([{ id }]);
});
