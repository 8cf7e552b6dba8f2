import { setFlagsFromString } from "node:v8";

/** The launcher keeps the heap small while code is loaded. From here on it may grow with the load. */
export function letHeapGrow(): void {
  setFlagsFromString("--semi-space-growth-factor=2");
  // V8 decides how much garbage it lets accumulate.
  setFlagsFromString("--heap-growing-percent=0");
}
