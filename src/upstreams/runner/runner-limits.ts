import type { BackOffOptions } from "./back-off.ts";
import type { BreakerOptions } from "./breaker.ts";
import type { SlotOptions } from "./slots.ts";

export type RunnerLimits = {
  readonly slots: SlotOptions;
  readonly sandboxSlots: SlotOptions;
  readonly breaker: BreakerOptions;
  readonly backOff: BackOffOptions;
};

/** Limits per upstream. */
export const RUNNER_LIMITS: RunnerLimits = {
  // Each slot is one connection to a server that has its own queue.
  slots: { maxRunning: 1_024, maxWaiting: 1_024, maxWaitMs: 10_000 },
  // The sandbox has no server, so this is the limit of generations per process.
  sandboxSlots: { maxRunning: 8_192, maxWaiting: 0, maxWaitMs: 0 },
  breaker: { maxFailures: 5, healthyMs: 1_000, openMs: 1_000, maxOpenMs: 10_000 },
  backOff: { maxAttempts: 3, firstMs: 100, maxMs: 2_000, maxRetryAfterMs: 3_000 },
};
