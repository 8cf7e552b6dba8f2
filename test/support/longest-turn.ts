import { setImmediate as nextTurn } from "node:timers/promises";

/**
 * The most CPU time, in milliseconds, that one turn of the event loop of this thread took until the work ended. Not
 * the time on the wall: other processes share this machine.
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
