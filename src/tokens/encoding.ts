import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { setImmediate as nextTurn } from "node:timers/promises";
import { BytePairEncodingCore } from "gpt-tokenizer/BytePairEncodingCore";
import { Cl100KBase } from "gpt-tokenizer/encodingParams/cl100k_base";
import { pieceEnd } from "./piece.ts";

/** About a millisecond of work. */
const RANKS_PER_TURN = 1_000;

export type Encoding = {
  /** How many tokens a text has; one of more than `most` may not be counted to its end. */
  count(text: string, most?: number): number;
};

/**
 * Loads cl100k_base without holding anybody up. The package's own module would be parsed in one go, which takes 80 ms;
 * o200k_base takes twice the time and memory, and its table cannot be filled in less than 50 ms.
 */
export async function loadEncoding(): Promise<Encoding> {
  const core = new BytePairEncodingCore({ ...Cl100KBase(await readRanks()), mergeCacheSize: 0 });
  return {
    count: (text, most = Number.POSITIVE_INFINITY) => {
      let tokens = 0;
      for (let start = 0; start < text.length && tokens <= most; ) {
        const end = pieceEnd(text, start);
        // No special token is allowed, so what looks like one is plain text.
        tokens += core.countNative(text.slice(start, end));
        start = end;
      }
      return tokens;
    },
  };
}

/** Each line is a token in base64 and its rank. */
export async function readRanks(): Promise<(string | number[])[]> {
  const path = createRequire(import.meta.url).resolve("gpt-tokenizer/data/cl100k_base.tiktoken");
  const file = await readFile(path, "latin1");
  // Bytes that are no text are kept as they are, and so does the package with a byte order mark.
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const ranks: (string | number[])[] = [];
  const decode = (bytes: Uint8Array) => {
    try {
      const text = utf8.decode(bytes);
      return text.startsWith("\uFEFF") ? [...bytes] : text;
    } catch {
      return [...bytes];
    }
  };
  let read = 0;
  for (let start = 0; start < file.length; ) {
    const newLine = file.indexOf("\n", start);
    const end = newLine < 0 ? file.length : newLine;
    const space = file.indexOf(" ", start);
    const bytes = Buffer.from(file.slice(start, space), "base64");
    ranks[Number(file.slice(space + 1, end))] = decode(bytes);
    start = end + 1;
    if (++read % RANKS_PER_TURN === 0) await nextTurn();
  }
  return ranks;
}
