import type { Arena } from "../arena.ts";
import { runEpisode } from "../episode.ts";
import { NO_FAULT } from "../faults/faults.ts";

const STEP = 100;
const MAX_PER_SECOND = 2_000;
const STEP_SECONDS = 5;
/** Latency from the planned time. Above this limit, calls pile up. */
const MAX_P99_MS = 250;

/**
 * The highest rate of the usual mix, in calls per second, at which calls do not pile up. Includes generator
 * and upstream.
 */
export async function topRate(arena: Arena, seed: number): Promise<number> {
  for (let perSecond = STEP; perSecond <= MAX_PER_SECOND; perSecond += STEP) {
    const number = 100 + perSecond / STEP;
    const options = { arena, seed, number, seconds: STEP_SECONDS, perSecond, faults: [NO_FAULT] };
    const { history } = await runEpisode(options);
    const latencies = history.entries
      .filter(({ kind }) => kind === "me")
      .map(({ endedAt, plannedAt }) => endedAt - plannedAt)
      .sort((a, b) => a - b);
    const p99Ms = latencies[Math.floor(latencies.length * 0.99)] ?? 0;
    console.log(`${perSecond} per second: p99 of GET /v1/me ${p99Ms.toFixed(0)} ms`);
    if (p99Ms > MAX_P99_MS) return Math.max(STEP, perSecond - STEP);
  }
  return MAX_PER_SECOND;
}
