const waiting: (() => void)[] = [];

/**
 * Resolves in a later turn of the event loop. Each turn has one step of all large calls together, in order of
 * arrival, so several large calls delay small ones no longer than one does.
 */
export function nextTurn(): Promise<void> {
  return new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(startNext);
  });
}

function startNext(): void {
  waiting.shift()?.();
  if (waiting.length > 0) setImmediate(startNext);
}
