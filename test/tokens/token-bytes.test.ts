import { encode } from "gpt-tokenizer/encoding/cl100k_base";
import { expect, test } from "vitest";
import { bytesOfTokens } from "../../src/tokens/token-bytes.ts";

const textOf = (tokens: readonly number[]) => bytesOfTokens(tokens)?.toString("utf8");

test("tokens have the bytes of their text", () => {
  for (const text of ["", "Hello", "Überraschung 🎈", "\ufeffa\0", "🦄".repeat(100)]) {
    expect(textOf(encode(text, { disallowedSpecial: new Set() }))).toBe(text);
  }
});

test("the incomplete last character of one call is not completed by the tokens of the next call", () => {
  const unicorn = encode("🦄");
  const [begin, end] = [unicorn.slice(0, 1), unicorn.slice(1)];
  const whole = textOf(encode("🎈"));
  expect(textOf(begin)).toBe("\ufffd");
  expect(textOf(encode("🎈"))).toBe(whole);
  expect(textOf(end)).not.toContain("🦄");
});

test.each([-1, 1.5, 100_256, 100_257, 1e9, Number.NaN])("%d is not a token", (number) => {
  expect(bytesOfTokens([1, number])).toBeUndefined();
});
