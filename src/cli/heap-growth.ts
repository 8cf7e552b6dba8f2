import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

type CollectGarbage = (options: { readonly type: "major"; readonly flavor: "last-resort" }) => void;

/**
 * Returns the memory that loading the code has left behind: V8 would not collect it before the load demands it. Takes about
 * 0.1 s.
 */
export function collectGarbage(): void {
  // Only contexts that are created after this have the function.
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as CollectGarbage;
  collect({ type: "major", flavor: "last-resort" });
}

/** The launcher keeps the heap small while code is loaded. From here on it may grow with the load. */
export function letHeapGrow(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
  // V8 decides how much garbage it lets accumulate.
  setFlagsFromString("--heap-growing-percent=0");
}
