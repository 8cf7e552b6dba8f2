import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Cl100KBase } from "gpt-tokenizer/encodingParams/cl100k_base";
import { BytePairs } from "./byte-pairs.ts";
import { PIECE_CHARACTERS, pieceEnd } from "./piece.ts";

/** Takes less than a millisecond. */
const RANKS_PER_TURN = 1_000;

export type Encoding = {
  /** The number of tokens. Counting may stop once there are more than `most`. */
  count(text: string, most?: number): number;
};

/**
 * Loads cl100k_base without blocking the event loop. The package's own encoder would be parsed and filled in
 * one step of 80 ms; o200k_base takes twice the time and memory.
 */
export async function loadEncoding(): Promise<Encoding> {
  const words = Cl100KBase([]).tokenSplitRegex;
  const pairs = new BytePairs(await readRanks(), words, PIECE_CHARACTERS);
  return {
    count: (text, most = Number.POSITIVE_INFINITY) => {
      let tokens = 0;
      for (let start = 0; start < text.length && tokens <= most; ) {
        const end = pieceEnd(text, start);
        // No special tokens are defined, so text that looks like one is plain text.
        tokens += pairs.count(text.slice(start, end));
        start = end;
      }
      return tokens;
    },
  };
}

/**
 * The rank of each token, keyed by its bytes as a string of code units below 256. Each line of the file has a
 * token in base64 and its rank.
 */
export async function readRanks(): Promise<Map<string, number>> {
  const path = createRequire(import.meta.url).resolve("gpt-tokenizer/data/cl100k_base.tiktoken");
  const file = await readFile(path, "latin1");
  const ranks = new Map<string, number>();
  for (let start = 0; start < file.length; ) {
    const newLine = file.indexOf("\n", start);
    const end = newLine < 0 ? file.length : newLine;
    const space = file.indexOf(" ", start);
    ranks.set(atob(file.slice(start, space)), Number(file.slice(space + 1, end)));
    start = end + 1;
    if (ranks.size % RANKS_PER_TURN === 0) await nextTurn();
  }
  return ranks;
}
