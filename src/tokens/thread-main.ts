import { parentPort } from "node:worker_threads";
import { loadEncoding } from "./encoding.ts";

/** What the counting thread runs: texts come in, the number of their tokens goes out. */
const encoding = await loadEncoding();
parentPort?.on("message", (texts: readonly string[]) => {
  let tokens = 0;
  for (const text of texts) tokens += encoding.count(text);
  parentPort?.postMessage(tokens);
});
