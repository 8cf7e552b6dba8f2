import { setTimeout as wait } from "node:timers/promises";
import type { SplitSource } from "../store/split/split-source.ts";

const POLL_MS = 5;

/** The standbys of the source that are still behind the position when the time is over. */
export async function standbysBehindAfter(
  withinMs: number,
  position: string,
  source: SplitSource,
): Promise<readonly string[]> {
  let behind: readonly string[] = [];
  await isTrueWithin(withinMs, async () => {
    behind = await source.standbysBehind(position);
    return behind.length === 0;
  });
  return behind;
}

/** Transactions that begin later see the current owners. */
export async function haveEnded(
  transactions: ReadonlySet<string>,
  source: SplitSource,
  withinMs: number,
): Promise<boolean> {
  let running = transactions;
  return await isTrueWithin(withinMs, async () => {
    const current = await source.transactions();
    running = new Set([...running].filter((id) => current.has(id)));
    return running.size === 0;
  });
}

export async function isTrueWithin(ms: number, check: () => Promise<boolean>): Promise<boolean> {
  const until = performance.now() + ms;
  for (;;) {
    if (await check()) return true;
    if (performance.now() > until) return false;
    await wait(POLL_MS);
  }
}
