import { expect, test } from "vitest";
import { unitsOf } from "../../src/domain/text.ts";
import { sampleOf } from "../../src/tokens/token-counter.ts";

/** A random function that always returns the place. */
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

test("a part continues in the next text, and after the last one in the first", () => {
  expect(sampleOf(["ab", "", "cd", "ef", "gh"], 4, at(0.5))).toEqual(["b", "d", "f", "h"]);
  expect(sampleOf(["abc", "def", "ghi", "jkl"], 8, at(0.9))).toEqual(["c", "d", "f", "g", "i", "j", "l", "a"]);
});

test("every character is taken with the same probability", () => {
  const texts = Array.from({ length: 40 }, () => "abcdefghij");
  const taken = new Map<string, number>();
  for (let i = 0; i < 1_000; i++)
    for (const one of sampleOf(texts, 24, at((i + 0.5) / 1_000)).join("")) taken.set(one, (taken.get(one) ?? 0) + 1);
  expect([...taken.values()]).toEqual(Array.from({ length: 10 }, () => 2_400));
});

test("no surrogate pair is split", () => {
  for (let place = 0; place < 1; place += 0.01) {
    const sample = sampleOf(["\u{1f600}".repeat(1_000)], 101, at(place));
    expect(sample.every((part) => part.isWellFormed() && part.length > 0)).toBe(true);
    expect(unitsOf(sample)).toBeLessThanOrEqual(101);
  }
});
