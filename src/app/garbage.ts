import { Session } from "node:inspector/promises";
import type { BodyBudget } from "../codec/body-budget.ts";
import type { Log } from "../telemetry/log.ts";

/** Requests of this size together leave so much garbage that the process stays large after them. */
const LARGE_BYTES = 67_108_864;
const QUIET_MS = 10_000;

/**
 * Collects the garbage of large requests when there have been none for a while. V8 would keep it, and the pages of its heap, until more
 * is allocated.
 */
export function collectAfterLargeRequests(budget: BodyBudget, log: Log, signal: AbortSignal): void {
  let wasLarge = false;
  const timer = setInterval(() => {
    const isLarge = budget.takePeakBytes() >= LARGE_BYTES;
    if (wasLarge && !isLarge) collectGarbage().catch((error: unknown) => log.warn({ err: error }, "garbage not collected"));
    wasLarge = isLarge;
  }, QUIET_MS).unref();
  signal.addEventListener("abort", () => clearInterval(timer), { once: true });
}

/**
 * Collects the whole heap and returns its unused pages. The global `gc` would need a flag of the command line, or a second V8 context:
 * with one, each call costs 1.2 to 1.9 times the CPU time.
 */
export async function collectGarbage(): Promise<void> {
  const session = new Session();
  session.connect();
  await session.post("HeapProfiler.collectGarbage");
  session.disconnect();
}
