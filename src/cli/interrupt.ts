import { CommandFailure } from "./failure.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Runs work that removes its unfinished results when a signal interrupts it. */
export async function withInterrupt<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
  const controller = new AbortController();
  const interrupt = (name: NodeJS.Signals) => controller.abort(new Interrupted(name));
  for (const name of SIGNALS) process.on(name, interrupt);
  try {
    return await work(controller.signal);
  } catch (error) {
    if (controller.signal.aborted) throw controller.signal.reason;
    throw error;
  } finally {
    for (const name of SIGNALS) process.off(name, interrupt);
  }
}

class Interrupted extends CommandFailure {
  constructor(signal: NodeJS.Signals) {
    super(`interrupted by ${signal}`);
  }
}
