import { Code, ConnectError } from "@connectrpc/connect";
import { useEffect } from "preact/hooks";

const FIRST_WAIT_MS = 1_000;
const MAX_WAIT_MS = 30_000;
const REFRESH_MS = 2_000;

/** Loads a list again for each item of a stream, which is opened again whenever it ends. Another id is another stream. */
export function useStream(
  id: string | undefined,
  open: (signal: AbortSignal) => AsyncIterable<unknown>,
  reload: () => void,
): void {
  useEffect(() => {
    if (id === undefined) return;
    const controller = new AbortController();
    void follow(open, reload, controller.signal);
    return () => controller.abort();
  }, [id]);
}

async function follow(
  open: (signal: AbortSignal) => AsyncIterable<unknown>,
  reload: () => void,
  signal: AbortSignal,
): Promise<void> {
  for (let waitMs = FIRST_WAIT_MS; !signal.aborted; waitMs = Math.min(waitMs * 2, MAX_WAIT_MS)) {
    try {
      for await (const _ of open(signal)) {
        waitMs = FIRST_WAIT_MS;
        reload();
      }
    } catch (error) {
      // The list shows why the viewer may not read it.
      const { code } = ConnectError.from(error);
      if (code === Code.Unauthenticated || code === Code.PermissionDenied) return;
    }
    await delay(waitMs, signal);
    // What happened while there was no stream.
    if (!signal.aborted) reload();
  }
}

/** An item every few seconds while the page is visible. */
export async function* ticks(signal: AbortSignal): AsyncGenerator<void> {
  for (;;) {
    await delay(REFRESH_MS, signal);
    if (signal.aborted) return;
    if (!document.hidden) yield;
  }
}

export function delay(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
