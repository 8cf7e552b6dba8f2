import { Session } from "node:inspector/promises";
import { setFlagsFromString } from "node:v8";

/** Call this when the server is ready, before its first call. Takes about 0.1 s. */
export async function prepareForLoad(): Promise<void> {
  await collectGarbage();
  // The memory of large bodies counts as garbage of a heap that is much smaller: V8 would collect it for every third of them.
  setFlagsFromString("--heap-growing-percent=100");
}

/**
 * Returns the memory that loading the code has left behind: V8 would not collect it before the load demands it. The global `gc`
 * would need a flag of the command line, or a second V8 context: with one, each call costs 1.2 to 1.9 times the CPU time.
 */
async function collectGarbage(): Promise<void> {
  const session = new Session();
  session.connect();
  await session.post("HeapProfiler.collectGarbage");
  session.disconnect();
}
