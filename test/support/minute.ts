/**
 * Runs an attempt that must happen within one minute of the clock, and repeats it if the minute changed
 * during it. The servers and the database of the tests use the clock of this machine.
 */
export async function withinOneMinute<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (;;) {
    const minute = currentMinute();
    try {
      const result = await attempt();
      if (currentMinute() === minute) return result;
    } catch (error) {
      if (currentMinute() === minute) throw error;
    }
  }
}

function currentMinute(): number {
  return Math.floor(Date.now() / 60_000);
}
