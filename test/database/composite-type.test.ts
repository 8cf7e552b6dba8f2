import { expect, test } from "vitest";
import { CompositeType } from "../../src/database/driver/batcher.ts";
import { useStore } from "../support/store.ts";

const database = useStore();

test("bytes arrive unchanged", async () => {
  const type = new CompositeType(["value"]);
  await database.owner`CREATE TYPE bytes AS (value bytea)`;
  const read = await database.owner.unsafe("SELECT * FROM unnest($1::bytes[])", [type.arrayOf([{ value: { hex: "00ff5c22" } }])]);
  expect([...read]).toEqual([{ value: Buffer.from([0x00, 0xff, 0x5c, 0x22]) }]);
});

test("every text arrives unchanged in an array of rows", async () => {
  const quoted = ['a"b', "a\\b", '\\"', "a,b", "(a)", "{a}", " a ", "a\nb\tc", "é€😀", "'$1'", '"\\,()\n'.repeat(80_000)];
  const texts = ["", "NULL", "plain", ...quoted];
  const rows = texts.map((text, n) => ({ n, text }));
  const type = new CompositeType(["n", "text", "missing"]);
  await database.owner`CREATE TYPE pair AS (n integer, text text, missing text)`;
  const read = await database.owner.unsafe("SELECT * FROM unnest($1::pair[])", [type.arrayOf(rows)]);
  expect([...read]).toEqual(rows.map((row) => ({ ...row, missing: null })));
});
