import fc from "fast-check";
import encoding from "tiktoken/encoders/cl100k_base.json" with { type: "json" };
import { Tiktoken } from "tiktoken/lite";
import { afterAll, expect, test } from "vitest";
import { countTexts } from "../../src/tokens/count-tokens.ts";
import { splitTexts } from "../../src/tokens/split-texts.ts";
import { runs } from "../support/runs.ts";

const reference = new Tiktoken(encoding.bpe_ranks, encoding.special_tokens, encoding.pat_str);
afterAll(() => reference.free());

/** The count of OpenAI's reference implementation, without special tokens. */
const expected = (text: string) => reference.encode_ordinary(text).length;

/** JavaScript and Rust classify these differently as white space. */
const DISPUTED = /[\u0085\ufeff]/;

const texts = fc
  .array(fc.string({ unit: "grapheme", maxLength: 40 }), { maxLength: 120 })
  .map((parts) => parts.join(" "))
  .filter((text) => !DISPUTED.test(text));

const PROSE = "It's 12,345 rows – “really”?\n\n  Yes.   Ende der Übertragung. ".repeat(300);
const CHINESE = "他说,漢字和仮名交じり文。".repeat(2_000);

test.each([
  ["hello world", 2],
  ["", 0],
  ["unbreakable", 3],
  ["\ufeffhello", 2],
])("%j has %i tokens", (text, tokens) => {
  expect(countTexts([text])).toBe(tokens);
  expect(expected(text)).toBe(tokens);
});

test("counts equal those of OpenAI's implementation", () => {
  fc.assert(
    fc.property(texts, (text) => {
      expect(countTexts([text])).toBe(expected(text));
    }),
    { numRuns: runs(300) },
  );
  for (const text of [PROSE, CHINESE, "x".repeat(128)]) expect(countTexts([text])).toBe(expected(text));
});

test("text that looks like a special token is plain text", () => {
  expect(countTexts(["<|endoftext|> and <|im_start|>"])).toBe(expected("<|endoftext|> and <|im_start|>"));
  expect(countTexts(["<|endoftext|>"])).toBeGreaterThan(1);
});

test("a long word has at most one token per 128 characters more than the reference", () => {
  for (const text of ["a".repeat(2_000), " ".repeat(2_000), "漢字仮名交文".repeat(300)]) {
    const tokens = countTexts([text]);
    expect(tokens).toBeGreaterThanOrEqual(expected(text));
    expect(tokens).toBeLessThanOrEqual(expected(text) + Math.ceil(text.length / 128));
  }
});

test("splitting a text does not change its token count", () => {
  for (const text of [PROSE, CHINESE]) {
    const groups = [...splitTexts([text], 1_000)];
    expect(groups.length).toBeGreaterThan(10);
    expect(groups.reduce((sum, group) => sum + countTexts(group), 0)).toBe(expected(text));
  }
});

test("groups of parts keep the order and the maximum length, and split no surrogate pair", () => {
  const maxCharacters = 256;
  fc.assert(
    fc.property(
      fc.array(fc.oneof(fc.string({ unit: "grapheme", maxLength: 2_000 }), fc.constant(`x${"😀".repeat(500)}`))),
      (all) => {
        const groups = [...splitTexts(all, maxCharacters)];
        expect(groups.flat().join("")).toBe(all.join(""));
        for (const group of groups) {
          expect(group.join("").length).toBeLessThanOrEqual(maxCharacters);
          expect(group.every((part) => part.length > 0 && part.isWellFormed())).toBe(true);
        }
      },
    ),
  );
});
