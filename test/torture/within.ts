import { setTimeout as wait } from "node:timers/promises";

/** Rejects if the work does not end in this time, so that a run names what hangs instead of hanging with it. */
export async function within<Result>(ms: number, what: string, work: Promise<Result>): Promise<Result> {
  const ended = new AbortController();
  const limit = wait(ms, undefined, { signal: ended.signal }).then(() => {
    throw new Error(`${what}: no end within ${ms} ms`);
  });
  try {
    return await Promise.race([work, limit]);
  } finally {
    ended.abort();
  }
}
