import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * The maximum CPU time, in milliseconds, of one turn of this thread's event loop until the work ends. CPU
 * time, not wall time, because other processes share the machine.
 */
export async function longestTurnMs(work: Promise<unknown>): Promise<number> {
  let isOver = false;
  const ended = work.finally(() => {
    isOver = true;
  });
  let longest = 0;
  let before = process.threadCpuUsage();
  while (!isOver) {
    await nextTurn();
    const now = process.threadCpuUsage();
    longest = Math.max(longest, now.user + now.system - before.user - before.system);
    before = now;
  }
  await ended;
  return longest / 1_000;
}
