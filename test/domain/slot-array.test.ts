import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { SlotArray } from "../../src/domain/slot-array.ts";

const INSERTED = 10_000;
const ITEM_WORDS = 128;
const WORD_BYTES = 8;
const MAX_SIZE = 64;
/** Insertions between two minor collections. */
const INSERTIONS_PER_COLLECTION = 500;

test("an item is listed until it is removed, and its slot is reused", () => {
  const slots = new SlotArray<string>();
  const [one, two] = [slots.insert("one"), slots.insert("two")];
  expect([...slots]).toEqual(["one", "two"]);
  slots.remove(one);
  expect([...slots]).toEqual(["two"]);
  expect(slots.insert("three")).toBe(one);
  slots.remove(two);
  expect([...slots]).toEqual(["three"]);
});

test("items can be removed during iteration", () => {
  const slots = new SlotArray<number>();
  const indexes = [1, 2, 3].map((item) => slots.insert(item));
  const seen: number[] = [];
  for (const item of slots) {
    seen.push(item);
    if (item === 1) slots.remove(indexes[1] as number);
  }
  expect(seen).toEqual([1, 3]);
});

test("a removed item is not promoted to the old generation, even when the array itself is old", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options?: { type: "minor" }) => void;
  const slots = new SlotArray<object>();
  const indexes: number[] = [];
  let before = 0;
  for (let i = 0; i < INSERTED; i++) {
    if (i === INSERTIONS_PER_COLLECTION) {
      // This promotes the array itself to the old generation.
      collect();
      before = oldBytes();
    }
    indexes.push(slots.insert(new Array(ITEM_WORDS).fill(0.5)));
    const oldest = indexes[i - MAX_SIZE];
    if (oldest !== undefined) slots.remove(oldest);
    if (i % INSERTIONS_PER_COLLECTION === 0) collect({ type: "minor" });
  }
  expect(oldBytes() - before).toBeLessThan((INSERTED * ITEM_WORDS * WORD_BYTES) / 20);
});

function oldBytes(): number {
  const old = getHeapSpaceStatistics().find(({ space_name: name }) => name === "old_space");
  return old?.space_used_size ?? 0;
}
