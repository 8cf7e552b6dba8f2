import { once } from "node:events";
import { CallerGone } from "../../codec/body.ts";
import { isGone } from "./gone.ts";

/** An answer that can be written piece by piece, whichever HTTP it is. */
type EventSink = {
  write(text: string): boolean;
  end(): unknown;
  once(event: "close" | "drain", listener: () => void): unknown;
};

type EventStreamOptions = {
  readonly write: (message: unknown) => string;
  /** The JSON of an error that comes after the first event. */
  readonly errorJson: (error: unknown) => string;
  readonly keepAliveMs: number;
  /** Ends the stream, whatever the service still does. */
  readonly signal: AbortSignal;
};

/** Long enough not to cost anything, short enough for proxies that cut what is silent. */
export const KEEP_ALIVE_MS = 15_000;

/**
 * Sends messages as server-sent events, one `data:` each, then `data: [DONE]`. The first message is given, so that
 * whatever fails before it can still be an ordinary answer.
 */
export async function sendEvents(
  sink: EventSink,
  first: IteratorResult<unknown>,
  messages: AsyncIterator<unknown>,
  options: EventStreamOptions,
): Promise<void> {
  const keepAlive = setInterval(() => sink.write(": keep-alive\n\n"), options.keepAliveMs);
  let cut: (reason: unknown) => void = () => undefined;
  const onAbort = () => cut(options.signal.reason);
  options.signal.addEventListener("abort", onAbort);
  const nextMessage = () =>
    new Promise<IteratorResult<unknown>>((resolve, reject) => {
      cut = reject;
      if (options.signal.aborted) onAbort();
      messages.next().then(resolve, reject);
    });
  try {
    for (let next = first; next.done !== true; next = await nextMessage()) {
      if (isGone(sink)) throw new CallerGone();
      if (!sink.write(`data: ${options.write(next.value)}\n\n`)) await drained(sink);
      keepAlive.refresh();
    }
    sink.write("data: [DONE]\n\n");
  } catch (error) {
    if (isGone(sink)) throw new CallerGone();
    sink.write(`data: ${options.errorJson(error)}\n\n`);
    throw error;
  } finally {
    options.signal.removeEventListener("abort", onAbort);
    clearInterval(keepAlive);
    sink.end();
    await messages.return?.();
  }
}

/** Until there is room again, or nobody left to write to. */
async function drained(sink: EventSink): Promise<void> {
  if (isGone(sink)) return;
  const waiting = new AbortController();
  const emitter = sink as unknown as NodeJS.EventEmitter;
  try {
    await Promise.race(["drain", "close"].map((event) => once(emitter, event, { signal: waiting.signal })));
  } finally {
    waiting.abort();
  }
}
