/** Calls the listener when the signal aborts, or at once if it is aborted. */
export function onAbort(signal: AbortSignal | undefined, listener: () => void): void {
  if (signal?.aborted) listener();
  else signal?.addEventListener("abort", listener, { once: true });
}
