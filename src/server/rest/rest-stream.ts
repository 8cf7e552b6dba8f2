import { CallerDisconnected } from "../../codec/body.ts";
import { isClosed } from "../http.ts";
import { untilWritable } from "../until-writable.ts";

/** A response that can be written in pieces, over HTTP/1.1 or HTTP/2. */
type EventSink = {
  write(text: string): boolean;
  end(): unknown;
  once(event: "close" | "drain", listener: () => void): unknown;
  off(event: "close" | "drain", listener: () => void): unknown;
};

type EventStreamOptions = {
  readonly event: (message: unknown) => string;
  /** An error after the first event; `position` is the number of events before it. */
  readonly errorEvent: (error: unknown, position: number) => string;
  readonly keepAlive: string;
  readonly keepAliveMs: number;
  /** Sent after the last event; empty for nothing. */
  readonly end: string;
  /** Ends the stream, even if the service is still running. */
  readonly signal: AbortSignal;
};

/** Long enough to cost little, short enough for proxies that close silent connections. */
export const KEEP_ALIVE_MS = 15_000;

/**
 * Sends each message as a server-sent event. The first message is passed in, so that an earlier failure can
 * still be an ordinary error response.
 */
export async function sendEvents(
  sink: EventSink,
  first: IteratorResult<unknown>,
  messages: AsyncIterator<unknown>,
  options: EventStreamOptions,
): Promise<void> {
  const keepAlive = setInterval(() => sink.write(options.keepAlive), options.keepAliveMs);
  let position = 0;
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
      if (isClosed(sink)) throw new CallerDisconnected();
      if (!sink.write(options.event(next.value))) await untilWritable(sink);
      position++;
      keepAlive.refresh();
    }
    if (options.end !== "") sink.write(options.end);
  } catch (error) {
    if (isClosed(sink)) throw new CallerDisconnected();
    sink.write(options.errorEvent(error, position));
    throw error;
  } finally {
    options.signal.removeEventListener("abort", onAbort);
    clearInterval(keepAlive);
    sink.end();
    await messages.return?.();
  }
}
