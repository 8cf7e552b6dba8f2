import { Session } from "node:inspector/promises";
import { setFlagsFromString } from "node:v8";

/**
 * Returns the memory that loading the code has left behind: V8 would not collect it before the load demands it. Takes about
 * 0.1 s. The global `gc` would need a flag of the command line, or a second V8 context: with one, each call costs 1.2 to 1.9
 * times the CPU time.
 */
export async function collectGarbage(): Promise<void> {
  const session = new Session();
  session.connect();
  await session.post("HeapProfiler.collectGarbage");
  session.disconnect();
}

/** The launcher keeps the heap small while code is loaded. From here on it may grow with the load. */
export function letHeapGrow(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
  // The memory of large bodies counts as garbage of a heap that is much smaller: V8 would collect it for every third of them.
  setFlagsFromString("--heap-growing-percent=200");
}
