import { parentPort } from "node:worker_threads";
import type { Load } from "./counting-thread.ts";
import { loadEncoding } from "./encoding.ts";

/** What the counting thread runs: texts come in, the number of their tokens goes out. */
const encoding = await loadEncoding();
parentPort?.on("message", ({ texts, most }: Load) => {
  let tokens = 0;
  for (const text of texts) tokens += encoding.count(text, most - tokens);
  parentPort?.postMessage(tokens);
});
