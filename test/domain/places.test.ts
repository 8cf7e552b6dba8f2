import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { Places } from "../../src/domain/places.ts";

const CAME = 30_000;
const ITEM_WORDS = 128;
const WORD_BYTES = 8;
const AT_ONCE = 64;
/** A small collection after so many. */
const EACH = 1_000;

test("what entered is there until it leaves, and its place is taken again", () => {
  const places = new Places<string>();
  const [one, two] = [places.add("one"), places.add("two")];
  expect([...places]).toEqual(["one", "two"]);
  places.remove(one);
  expect([...places]).toEqual(["two"]);
  expect(places.add("three")).toBe(one);
  places.remove(two);
  expect([...places]).toEqual(["three"]);
});

test("things may leave, and others come, while one looks at them", () => {
  const places = new Places<number>();
  const given = [1, 2, 3].map((item) => places.add(item));
  const seen: number[] = [];
  for (const item of places) {
    seen.push(item);
    if (item === 1) places.remove(given[1] as number);
  }
  expect(seen).toEqual([1, 3]);
});

test("what has left is not carried over to where garbage is looked for last, however old the places are", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as (options?: { type: "minor" }) => void;
  const places = new Places<object>();
  const given: number[] = [];
  let before = 0;
  for (let i = 0; i < CAME; i++) {
    if (i === EACH) {
      // From here on the places themselves are old.
      collect();
      before = oldBytes();
    }
    given.push(places.add(new Array(ITEM_WORDS).fill(0.5)));
    const left = given[i - AT_ONCE];
    if (left !== undefined) places.remove(left);
    if (i % EACH === 0) collect({ type: "minor" });
  }
  expect(oldBytes() - before).toBeLessThan((CAME * ITEM_WORDS * WORD_BYTES) / 20);
});

function oldBytes(): number {
  const old = getHeapSpaceStatistics().find(({ space_name: name }) => name === "old_space");
  return old?.space_used_size ?? 0;
}
