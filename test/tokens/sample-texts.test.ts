import { expect, test } from "vitest";
import { unitsOf } from "../../src/domain/characters.ts";
import { sampleOf } from "../../src/tokens/sample-texts.ts";

/** At the same place of each section. */
const at = (place: number) => () => place;

test("short texts are taken as they are", () => {
  expect(sampleOf(["ab", "", "cd"], 4, at(0.5))).toEqual(["ab", "cd"]);
  expect(sampleOf([], 4, at(0.5))).toEqual([]);
});

test("a quarter of the sample is from a random place of each quarter of the texts", () => {
  const texts = ["a".repeat(100), "b".repeat(100), "c".repeat(100), "d".repeat(100)];
  for (const place of [0, 0.3, 0.9])
    expect(sampleOf(texts, 40, at(place))).toEqual(["a", "b", "c", "d"].map((one) => one.repeat(10)));
});

test("a part ends with its text", () => {
  const sample = sampleOf(
    Array.from({ length: 100 }, () => "abc"),
    40,
    at(0.01),
  );
  expect(sample).toHaveLength(4);
  for (const part of sample) expect("abc".endsWith(part) && part !== "").toBe(true);
});

test("no surrogate pair is split", () => {
  for (let place = 0; place < 1; place += 0.01) {
    const sample = sampleOf(["\u{1f600}".repeat(1_000)], 101, at(place));
    expect(sample.every((part) => part.isWellFormed() && part.length > 0)).toBe(true);
    expect(unitsOf(sample)).toBeLessThanOrEqual(101);
  }
});
