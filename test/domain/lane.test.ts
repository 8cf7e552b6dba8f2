import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { typeIds } from "../../src/domain/ids.ts";
import { LANE_COUNT, laneOfFingerprint, laneOfId } from "../../src/domain/lane.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** PostgreSQL's text holds no NUL. */
const texts = fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\u0000"));

test("the server and the database agree on the lane of every id", async () => {
  const ids = [...fc.sample(texts, 500), ...Array.from({ length: 500 }, () => typeIds.account())];
  const rows = await database.owner<{ lane: number }[]>`
    SELECT vx.lane_of(id) AS lane FROM unnest(${ids}::text[]) WITH ORDINALITY AS a (id, n) ORDER BY n`;
  expect(rows.map(({ lane }) => lane)).toEqual(ids.map(laneOfId));
  expect(new Set(rows.map(({ lane }) => lane)).size).toBe(LANE_COUNT);
});

test("the server and the database agree on the lane of every fingerprint", async () => {
  const fingerprints = fc.sample(fc.stringMatching(/^[0-9a-f]{64}$/), 200);
  const rows = await database.owner<{ lane: number }[]>`
    SELECT get_byte(decode(f, 'hex'), 0) & 63 AS lane
    FROM unnest(${fingerprints}::text[]) WITH ORDINALITY AS a (f, n) ORDER BY n`;
  expect(fingerprints.map(laneOfFingerprint)).toEqual(rows.map(({ lane }) => lane));
});

test("there are 64 lanes", async () => {
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
  const rows = await database.owner<
    { id: string }[]
  >`SELECT id FROM unnest(${ids.toReversed()}::text[]) id ORDER BY id`;
  expect(rows.map(({ id }) => id)).toEqual(ids);
});
