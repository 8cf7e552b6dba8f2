/** Runs all tasks at once, then throws what failed. */
export async function runAll(tasks: readonly Promise<void>[]): Promise<void> {
  const outcomes = await Promise.allSettled(tasks);
  throwFailures(outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason] : [])));
}

export function throwFailures(failures: readonly unknown[]): void {
  if (failures.length > 0) throw new AggregateError(failures, `looking up ${failures.length} payments failed`);
}
