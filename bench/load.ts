import { setTimeout as wait } from "node:timers/promises";

/** What callers measured. A type alias, so that it is a Sample. */
export type Load = { readonly perSecond: number; readonly p50Ms: number; readonly p99Ms: number };

/**
 * Runs concurrent callers for the given time. Each sends its next call as soon as the last one has ended. With a rate, it also waits until
 * the call is due, and the latency begins then.
 */
export async function runCallers(
  callers: number,
  seconds: number,
  call: (caller: number) => Promise<unknown>,
  rate?: number,
): Promise<Load> {
  const latencies: number[] = [];
  let calls = 0;
  const startedAt = performance.now();
  const until = startedAt + seconds * 1000;
  await Promise.all(
    Array.from({ length: callers }, async (_, caller) => {
      for (let at = performance.now(); at < until; at = performance.now()) {
        const due = rate === undefined ? at : startedAt + (calls++ * 1000) / rate;
        if (due > at) await wait(due - at);
        await call(caller);
        latencies.push(performance.now() - due);
      }
    }),
  );
  latencies.sort((a, b) => a - b);
  const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0;
  return { perSecond: (latencies.length / (performance.now() - startedAt)) * 1000, p50Ms: at(0.5), p99Ms: at(0.99) };
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
