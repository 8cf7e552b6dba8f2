import ranks from "gpt-tokenizer/bpeRanks/cl100k_base";
import { expect, test } from "vitest";
import { loadEncoding, readRanks } from "../../src/tokens/encoding.ts";
import { PIECE_CHARACTERS, pieceEnd } from "../../src/tokens/piece.ts";
import { longestTurnMs } from "../support/longest-turn.ts";

test("the table is the package's own", async () => {
  const own = await readRanks();
  const bytes = (token: string | readonly number[]) => Buffer.from(token as string).toString("latin1");
  expect([...own].sort(([, a], [, b]) => a - b)).toEqual(ranks.map((token, rank) => [bytes(token), rank]));
});

test("loading it holds nobody up", async () => {
  const rounds: number[] = [];
  for (let i = 0; i < 3; i++) rounds.push(await longestTurnMs(loadEncoding()));
  // The least: a turn of which something else has its share says nothing.
  expect(Math.min(...rounds)).toBeLessThan(50);
});

test("no piece is too long, empty, or ends within a surrogate pair", () => {
  for (const text of [
    "a".repeat(1_000),
    "😀".repeat(500),
    `x${"😀".repeat(500)}`,
    "word ".repeat(300),
    " ".repeat(999),
  ]) {
    for (let start = 0; start < text.length; ) {
      const end = pieceEnd(text, start);
      expect(end - start).toBeGreaterThan(0);
      expect(end - start).toBeLessThanOrEqual(PIECE_CHARACTERS);
      expect(text.slice(start, end).isWellFormed()).toBe(true);
      start = end;
    }
  }
});
