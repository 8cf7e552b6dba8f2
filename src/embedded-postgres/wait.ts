import { setTimeout as sleep } from "node:timers/promises";

const pollMs = 10;

/** Polls until the condition holds; false after the timeout. */
export async function until(condition: () => Promise<boolean>, boundMs: number): Promise<boolean> {
  const deadline = performance.now() + boundMs;
  for (;;) {
    if (await condition()) return true;
    if (performance.now() >= deadline) return false;
    await sleep(pollMs);
  }
}

/** A wait with a timeout that reports once when it takes long. */
export type BoundedWait = { pause(ms?: number): Promise<void> };

export function boundedWait(boundMs: number, onLong: () => void, onBound: () => Error): BoundedWait {
  const started = performance.now();
  let isReported = false;
  return {
    async pause(ms = pollMs) {
      const waitedMs = performance.now() - started;
      if (waitedMs > boundMs) throw onBound();
      if (waitedMs > 2_000 && !isReported) {
        isReported = true;
        onLong();
      }
      await sleep(ms);
    },
  };
}
