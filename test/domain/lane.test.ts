import fc from "fast-check";
import { expect, test } from "vitest";
import { LANE_COUNT, laneOfId } from "../../src/domain/lane.ts";
import { useStore } from "../support/store.ts";
import { typeIds } from "../support/type-ids.ts";

const database = useStore();

const texts = fc.string({ unit: "grapheme" });

test("the server and the database agree on the lane of every id", async () => {
  const lanes = Array.from({ length: LANE_COUNT }, (_, lane) => lane);
  const ids = [...lanes.map(typeIds.generation), ...lanes.map(typeIds.account)];
  const rows = await database.owner<{ lane: number }[]>`
    SELECT vx.lane_of(id) AS lane FROM unnest(${ids}::text[]) WITH ORDINALITY AS a (id, n) ORDER BY n`;
  expect(rows.map(({ lane }) => lane)).toEqual(ids.map(laneOfId));
  expect(ids.slice(0, LANE_COUNT).map(laneOfId)).toEqual(lanes);
});

test("every text maps to one of 1,024 lanes", async () => {
  const [row] = await database.owner`SELECT array_agg(lane ORDER BY lane) AS lanes FROM vx.lanes`;
  expect(row?.lanes).toEqual(Array.from({ length: LANE_COUNT }, (_, lane) => lane));
  fc.assert(
    fc.property(texts, (text) => {
      const lane = laneOfId(text);
      expect(lane >= 0 && lane < LANE_COUNT && Number.isInteger(lane)).toBe(true);
    }),
  );
});

test("the database sorts ids as the server does", async () => {
  const ids = Array.from({ length: 300 }, (_, i) => typeIds.key(i % LANE_COUNT));
  const rows = await database.owner<{ id: string }[]>`SELECT id FROM unnest(${ids.toReversed()}::text[]) id ORDER BY id`;
  expect(rows.map(({ id }) => id)).toEqual(ids);
});
