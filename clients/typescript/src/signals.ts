/** The signal of the controller, which also aborts with another one. Node 18 has no AbortSignal.any. */
export function abortedWith(signal: AbortSignal, abort: AbortController): AbortSignal {
  if (signal.aborted) abort.abort(signal.reason);
  else signal.addEventListener("abort", () => abort.abort(signal.reason), { once: true, signal: abort.signal });
  return abort.signal;
}

/** Ends a call that streams. Connect ends its timer only when the next message is read. */
export function endCall(abort: AbortController, rest: AsyncIterator<unknown>): void {
  abort.abort();
  rest.next().catch(() => undefined);
}
