// Writes the synchronous Python client from the asynchronous one, so that each call is written once.
import { readFileSync, writeFileSync } from "node:fs";

const FOLDER = "clients/python/src/vx";

/** What differs, in order. */
const REPLACEMENTS: readonly (readonly [RegExp, string])[] = [
  [/^"""The asynchronous client\..*"""$/m, '"""The synchronous client. Written by tools/write-python-sync.ts."""'],
  [/^from dataclasses/m, "import time\nfrom dataclasses"],
  [/^import anyio\n/m, ""],
  [/\banyio\.sleep\b/g, "time.sleep"],
  // Without an event loop, only single reads have a time limit.
  [/with anyio\.fail_after\(attempts\.remaining\):\n +/g, ""],
  [/\(httpx\.HTTPError, TimeoutError\)/g, "httpx.HTTPError"],
  [/\bAwaitable\[((?:[^[\]]|\[(?:[^[\]]|\[[^\]]*\])*\])*)\]/g, "$1"],
  [/\b(AsyncIterator), Awaitable, (Callable, Generic, )/, "$2Iterator, "],
  [/\bAsync(?=[A-Z])/g, ""],
  [/\b__a(enter|exit|iter)__/g, "__$1__"],
  [/\baclose\b/g, "close"],
  [/\baiter_bytes\b/g, "iter_bytes"],
  [/\basync (?=def|for|with)/g, ""],
  [/``async with``/g, "``with``"],
  [/\bawait /g, ""],
];

let text = readFileSync(`${FOLDER}/_async.py`, "utf8");
for (const [pattern, replacement] of REPLACEMENTS) text = text.replace(pattern, replacement);
writeFileSync(`${FOLDER}/_sync.py`, text);
