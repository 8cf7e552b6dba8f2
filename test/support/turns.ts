import { createHook } from "node:async_hooks";

/** How often the work, and what it causes in this thread, lets the event loop run other work: its calls of setImmediate. */
export async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  const hook = createHook({
    init: (_id, type) => {
      if (type === "Immediate") turns++;
    },
  });
  hook.enable();
  try {
    await work();
  } finally {
    hook.disable();
  }
  return turns;
}
