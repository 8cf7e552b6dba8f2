import { parentPort } from "node:worker_threads";
import type { Load } from "./counting-thread.ts";
import { loadEncoding } from "./encoding.ts";

/** Entry point of the counting thread: receives texts and returns their number of tokens. */
const encoding = await loadEncoding();
parentPort?.on("message", ({ texts, most }: Load) => {
  let tokens = 0;
  for (const text of texts) tokens += encoding.count(text, most - tokens);
  parentPort?.postMessage(tokens);
});
